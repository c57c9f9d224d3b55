use std::time::Duration;

use leasehold::member::MemberFailure;
use leasehold::{Error, ErrorKind, blocking};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::{RedisBuilder, RedisServer, RedisSet};

use super::naive::{Counted, Naive};
use crate::set;

pub(super) const LOCK: &str = "the-record";

/// Long enough for any test.
pub(super) const LONG: Duration = Duration::from_secs(30);

/// Servers, and two clients. Each client has network paths of its own to the servers.
#[derive(Debug)]
pub(super) struct Fixture {
    alice: Vec<Proxy>,
    bob: Vec<Proxy>,
    pub(super) servers: RedisSet,
}

impl Fixture {
    /// Returns three servers in one quorum.
    pub(super) fn of_three(servers: &RedisBuilder) -> Self {
        let servers = RedisSet::start_each(3, servers);
        let paths = || servers.iter().map(|server| Proxy::to(server.port()));
        Self {
            alice: paths().collect(),
            bob: paths().collect(),
            servers,
        }
    }

    /// Cuts Alice off from the first member, and Bob from the second. Each keeps a majority, and
    /// they share the third: [`in_common`](Self::in_common).
    pub(super) fn split(&self) {
        self.alice[0].set(NetworkFault::Refusing);
        self.bob[1].set(NetworkFault::Refusing);
    }

    /// Ends the split.
    pub(super) fn heal(&self) {
        self.alice[0].set(NetworkFault::None);
        self.bob[1].set(NetworkFault::None);
    }

    /// Returns the only member that the two majorities share.
    pub(super) fn in_common(&mut self) -> &mut RedisServer {
        &mut self.servers[2]
    }

    /// Sets the fault between Alice and every member.
    pub(super) fn set_network_fault_at_alice(&self, fault: NetworkFault) {
        for path in &self.alice {
            path.set(fault);
        }
    }

    pub(super) fn alice_urls(&self) -> Vec<String> {
        urls(&self.alice)
    }

    pub(super) fn bob_urls(&self) -> Vec<String> {
        urls(&self.bob)
    }

    /// Returns Alice and Bob, both naive.
    pub(super) fn naive(&self, from: Counted) -> [Naive; 2] {
        [
            Naive::new("alice", &ports(&self.alice), from),
            Naive::new("bob", &ports(&self.bob), from),
        ]
    }

    /// Returns Alice and Bob as clients of this library, after each has reached every member.
    pub(super) fn ours(&self, max_ttl: Duration) -> [blocking::Client; 2] {
        set::form(&self.servers, &self.alice_urls(), max_ttl);
        [self.alice_urls(), self.bob_urls()].map(|urls| {
            let client = set::client(&urls, max_ttl);
            let lock = client.lock("hello").ttl(set::TTL).wait(LONG);
            let guard = lock.acquire().unwrap_or_else(|error| panic!("{error}"));
            guard.release().unwrap_or_else(|error| panic!("{error}"));
            client
        })
    }
}

fn ports(paths: &[Proxy]) -> Vec<u16> {
    paths.iter().map(Proxy::port).collect()
}

fn urls(paths: &[Proxy]) -> Vec<String> {
    let url = |(member, path): (usize, &Proxy)| {
        format!("redis://127.0.0.1:{}?id=member-{member}", path.port())
    };
    paths.iter().enumerate().map(url).collect()
}

/// Checks that a second client was refused for lack of members with a vote, and not because the lock was
/// busy, which it could not know. Returns why the member that both clients could reach had no vote.
pub(super) fn refused(outcome: Result<Option<blocking::Guard>, Error>) -> MemberFailure {
    let error = match outcome {
        Err(error) => error,
        Ok(Some(guard)) => panic!("a second valid guard, fence {}", guard.fence()),
        Ok(None) => panic!("busy, though the only member that said so does not count"),
    };
    assert_eq!(error.kind(), ErrorKind::NoQuorum, "{error}");
    let mut failures = error.members().iter();
    let shared = failures.find(|failure| failure.id.as_str() == "member-2");
    let shared = shared.unwrap_or_else(|| panic!("the member in common is not named: {error}"));
    shared.clone()
}
