use std::time::Duration;

use leasehold::blocking::{Client, Guard};
use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold_redis::RedisStore;
use leasehold_testkit::faults::{Findings, Hold, ProtectedResource, Proxy};
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply, until};

use super::host::{Host, host_of};
use super::{LOCK, MAX_TTL, QUEUE, TTL, note};
use crate::set;

/// Servers, and processes that wait for a lock over them. The resource records what they are granted.
#[derive(Debug)]
pub(super) struct Fixture {
    pub(super) servers: RedisSet,
    pub(super) resource: ProtectedResource,
    hosts: usize,
}

impl Fixture {
    /// Starts this many servers in one quorum.
    pub(super) fn of(members: usize) -> Self {
        let servers = RedisSet::start(members);
        if members > 1 {
            set::form(&servers, &urls(&servers), MAX_TTL);
        }
        Self {
            servers,
            resource: ProtectedResource::open(),
            hosts: 0,
        }
    }

    /// Returns a client in this process.
    pub(super) fn client(&self) -> Client {
        Client::new(store(&urls(&self.servers)))
    }

    /// Takes the lock, which is free.
    pub(super) fn hold(&self, client: &Client) -> Guard {
        let held = client.lock(LOCK).ttl(TTL).acquire();
        held.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a process that can wait.
    pub(super) fn host(&mut self) -> Host {
        self.host_at(&urls(&self.servers))
    }

    /// Starts such a process, with all its connections through proxies of its own.
    pub(super) fn host_behind_proxies(&mut self) -> (Host, Vec<Proxy>) {
        let ports = self.servers.iter().map(RedisServer::port);
        let proxies: Vec<Proxy> = ports.map(Proxy::to).collect();
        let host = self.host_at(&members(proxies.iter().map(Proxy::port)));
        (host, proxies)
    }

    fn host_at(&mut self, urls: &[String]) -> Host {
        let number = self.hosts;
        self.hosts += 1;
        Host::start(number, &self.resource.path(), urls)
    }

    /// Starts `count` more waits of `host`. Returns the name that its client has in the queue.
    pub(super) fn wait(&self, host: &mut Host, count: usize) -> String {
        let before = self.clients();
        host.wait(count);
        self.await_queued(before.len() + count);
        let mut more = self.clients();
        for client in before {
            let known = more.iter().position(|other| *other == client);
            more.swap_remove(known.expect("it waits still"));
        }
        more.swap_remove(0)
    }

    /// Returns the clients of the waiters, in the order of their tickets.
    pub(super) fn clients(&self) -> Vec<String> {
        let client = |waiter: &String| waiter.split('.').next().unwrap_or_default().to_owned();
        waiters(&self.servers[0]).iter().map(client).collect()
    }

    /// Waits until the queue of every member has this many waiters.
    pub(super) fn await_queued(&self, count: usize) {
        until("they are in every queue", || {
            self.servers.iter().all(|server| queued(server) == count)
        });
    }

    /// Releases the lock. Returns how long it takes until the next grant.
    pub(super) fn time_from_release(&self, guard: Guard) -> Duration {
        let before = self.resource.grants();
        let begun = SystemClock.now();
        let ended = guard.release();
        assert!(ended.is_ok(), "{ended:?}");
        self.await_grants(before + 1);
        let holds = self.holds();
        holds[before].granted.since(begun)
    }

    pub(super) fn await_grants(&self, count: usize) {
        until("they are granted the lock", || {
            self.resource.grants() >= count
        });
    }

    /// Returns the grants, in the order of fences.
    pub(super) fn holds(&self) -> Vec<Hold> {
        let mut holds = self.resource.history().holds;
        holds.sort_by_key(|hold| hold.fence);
        holds
    }

    /// Returns the hosts that were granted the lock, in order.
    pub(super) fn order(&self) -> Vec<usize> {
        let holds = self.holds();
        holds.iter().map(|hold| host_of(hold.worker)).collect()
    }

    /// Returns the longest time between the end of a hold and the next grant, among the grants after `since`.
    pub(super) fn longest_gap(&self, since: BootInstant) -> Duration {
        let holds = self.holds();
        let gaps = holds.windows(2).filter_map(|pair| {
            let left = pair[0].left.filter(|left| *left >= since)?;
            Some(pair[1].granted.since(left))
        });
        gaps.max().unwrap_or_default()
    }

    /// Waits until nothing is queued, reserved or held. That must happen much sooner than abandoned entries
    /// end by themselves.
    pub(super) fn await_nothing_left(&self) {
        let end = SystemClock.now() + SOON;
        let left =
            |server: &RedisServer| server.command(&["EXISTS", QUEUE, LOCK]) != Reply::Integer(0);
        until("nobody is queued and nothing held", || {
            let over = SystemClock.now() > end;
            let free = !self.servers.iter().any(left);
            assert!(free || !over, "after {SOON:?}:\n{}", self.tell());
            free
        });
    }

    /// Checks that nothing happened that must never happen, and that no wait was refused.
    pub(super) fn assert_well(&self) {
        self.assert_exclusive();
        let refused = self.resource.history().refusals;
        assert_eq!(refused.first(), None, "{} refused", refused.len());
    }

    /// Checks that nothing happened that must never happen.
    pub(super) fn assert_exclusive(&self) {
        let found = Findings::of(&self.resource.history());
        assert_eq!(found.violations(), [""; 0]);
    }

    /// Describes what the servers know about the lock.
    pub(super) fn tell(&self) -> String {
        let told = self.servers.iter().map(|server| {
            let lock = server.command(&["GET", LOCK]);
            let queue = server.command(&["ZRANGE", QUEUE, "0", "9", "WITHSCORES"]);
            let length = queued(server);
            format!("{lock:?}, {length} queued, first {queue:?}")
        });
        told.collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let refusals = self.resource.history().refusals;
            note(&format!(
                "{} refused, the last: {:?}",
                refusals.len(),
                refusals.last()
            ));
            note(&self.tell());
        }
    }
}

/// How soon nothing may be left. It is shorter than the life of the queue's records.
const SOON: Duration = Duration::from_secs(10);

/// Returns the waiters in the queue of a server, in the order of tickets.
pub(super) fn waiters(server: &RedisServer) -> Vec<String> {
    let Reply::Array(queue) = server.command(&["ZRANGE", QUEUE, "0", "-1"]) else {
        panic!("ZRANGE: no list")
    };
    let waiter = |entry| match entry {
        Reply::Bulk(waiter) => waiter,
        other => panic!("{other:?}"),
    };
    queue.into_iter().map(waiter).collect()
}

/// Returns how many waiters are in the queue of a server.
pub(super) fn queued(server: &RedisServer) -> usize {
    match server.command(&["ZCARD", QUEUE]) {
        Reply::Integer(count) => usize::try_from(count).expect("a number"),
        other => panic!("ZCARD: {other:?}"),
    }
}

/// Returns the store of these tests.
pub(super) fn store(urls: &[String]) -> RedisStore {
    set::store(urls, MAX_TTL)
}

fn urls(servers: &RedisSet) -> Vec<String> {
    members(servers.iter().map(RedisServer::port))
}

/// Returns the members' URLs. A member has the same name on every path.
pub(super) fn members(ports: impl Iterator<Item = u16>) -> Vec<String> {
    let url = |(member, port)| format!("redis://127.0.0.1:{port}?id=member-{member}");
    ports.enumerate().map(url).collect()
}
