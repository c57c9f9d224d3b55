use std::time::Duration;

use leasehold::Client;
use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold::env::Entropy;
use leasehold_redis::TrustRules;
use leasehold_testkit::SeededEntropy;
use leasehold_testkit::faults::{History, Hold, Outages, ProtectedResource, Proxy};
use leasehold_testkit::servers::{RedisBuilder, RedisSet, until};

use crate::set::{self, MAX_TTL, TTL};
use crate::worker::{self, Way};
use leasehold_testkit::SecondProcess;

/// How many members the quorum has.
pub(crate) const MEMBERS: usize = 5;

/// How many processes share the lock.
const WORKERS: usize = 4;

/// The number of sites that the workers are spread over. Each has its own network path to every member.
const SITES: usize = 2;

/// How soon, for the measurements, the clients must have noticed that a member is back. Clients probe five
/// times a second, and servers report their age in seconds.
const NOTICED: Duration = Duration::from_secs(1);

/// Five servers, the paths to them, the processes that share a lock over them, and the record that
/// the lock protects.
#[derive(Debug)]
pub(crate) struct Cluster {
    // Workers come first, because they must end before what they work on.
    pub(crate) workers: Vec<SecondProcess>,
    /// By site, then by member.
    paths: Vec<Vec<Proxy>>,
    pub(crate) servers: RedisSet,
    pub(crate) resource: ProtectedResource,
    pub(crate) outages: Outages,
    chance: SeededEntropy,
    /// When all members have a vote again, by the rules.
    whole_at: BootInstant,
}

impl Cluster {
    /// Starts the servers, and workers that trust members and enter in this `manner`.
    pub(crate) fn start(servers: &RedisBuilder, manner: (TrustRules, Way), seed: u64) -> Self {
        let servers = RedisSet::start_each(MEMBERS, servers);
        let path = |_| servers.iter().map(|server| Proxy::to(server.port()));
        let paths: Vec<Vec<Proxy>> = (0..SITES).map(|site| path(site).collect()).collect();
        let sites: Vec<Vec<String>> = paths.iter().map(|paths| urls(paths)).collect();
        set::form(&servers, &sites[0], MAX_TTL);
        let resource = ProtectedResource::open();
        let worker = |number: usize| {
            let seed = seed.wrapping_mul(31).wrapping_add(number as u64);
            worker::start(
                number,
                seed,
                &resource.path(),
                manner,
                &sites[number % SITES],
            )
        };
        let cluster = Self {
            workers: (0..WORKERS).map(worker).collect(),
            paths,
            servers,
            resource,
            outages: Outages::new(MEMBERS),
            chance: SeededEntropy::new(seed),
            whole_at: SystemClock.now(),
        };
        cluster.await_grants(1);
        cluster
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&self, bound: usize) -> usize {
        self.chance.next_u64() as usize % bound
    }

    /// Returns some members, each once, in a random order.
    pub(crate) fn some_members<const N: usize>(&self) -> [usize; N] {
        let mut members: Vec<usize> = (0..MEMBERS).collect();
        std::array::from_fn(|_| members.swap_remove(self.below(members.len())))
    }

    /// Returns the network path from the site of `worker` to `member`.
    pub(crate) fn path(&self, worker: usize, member: usize) -> &Proxy {
        &self.paths[worker % SITES][member]
    }

    /// Waits until the other members know that `member` is no longer durable, and all earlier leases have
    /// ended.
    pub(crate) fn await_durability_off(&self, member: usize) {
        set::until_durability_is_off(&urls(&self.paths[0]), MAX_TTL, member);
        pause(TTL);
    }

    /// Returns a client at the first site.
    pub(crate) fn client(&self) -> Client {
        Client::new(set::store(&urls(&self.paths[0]), MAX_TTL))
    }

    /// Waits until the lock has been granted `more` times.
    pub(crate) fn await_grants(&self, more: usize) {
        let enough = self.resource.grants() + more;
        until("the lock is granted again", || {
            self.resource.grants() >= enough
        });
    }

    /// Waits until a worker at the site of `worker` has been granted the lock again.
    pub(crate) fn await_grant_at_site_of(&self, worker: usize) {
        let at_site = |other: usize| other % SITES == worker % SITES;
        let so_far = self.resource.grants_to(at_site);
        until("the lock is granted at the site again", || {
            self.resource.grants_to(at_site) > so_far
        });
    }

    /// Waits for a holder that stays inside for `stay`. Returns its hold while it is inside.
    pub(crate) fn await_holder(&self, stay: Duration) -> Hold {
        self.resource.ask_to_stay(stay);
        let mut found = None;
        until("somebody holds the lock and stays", || {
            found = self.resource.staying();
            found.is_some()
        });
        found.expect("a holder")
    }

    /// Waits until that holder has left.
    pub(crate) fn await_leaving(&self) {
        until("the holder leaves", || self.resource.staying().is_none());
    }

    /// Notes that `member` was out since `from`, and has a vote again `wait` from now at the latest.
    pub(crate) fn out_since(&mut self, member: usize, from: BootInstant, wait: Duration) {
        let until = SystemClock.now() + wait + NOTICED;
        self.outages.note(member, from, until);
        self.whole_at = self.whole_at.max(until);
    }

    /// Waits until all members have a vote again, by the rules.
    pub(crate) fn await_whole(&self) {
        until("all members count again", || {
            SystemClock.now() >= self.whole_at
        });
    }

    /// Ends the workers, and returns everything that happened.
    pub(crate) fn finish(mut self) -> (History, Outages) {
        for worker in std::mem::take(&mut self.workers) {
            worker.finish();
        }
        (self.resource.history(), self.outages.clone())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let refusals = self.resource.history().refusals;
            for worker in 0..WORKERS {
                let last = refusals.iter().rfind(|refusal| refusal.0 == worker);
                #[expect(clippy::print_stderr, reason = "beside the message of the panic")]
                {
                    eprintln!("worker {worker} was last refused: {last:?}");
                }
            }
        }
    }
}

/// Returns the URLs of the members at one site. The members have the same names everywhere.
fn urls(paths: &[Proxy]) -> Vec<String> {
    let url = |(member, path): (usize, &Proxy)| {
        format!("redis://127.0.0.1:{}?id=member-{member}", path.port())
    };
    paths.iter().enumerate().map(url).collect()
}

/// How long a member that forgot leases has no vote.
pub(crate) const AFTER_FORGETTING: Duration = MAX_TTL.saturating_add(Duration::from_secs(1));

/// How long a member has no vote after its clock was set right.
pub(crate) const AFTER_A_STEP: Duration = MAX_TTL;

/// Waits for `span`.
pub(crate) fn pause(span: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a fault lasts is part of it"
    )]
    std::thread::sleep(span);
}
