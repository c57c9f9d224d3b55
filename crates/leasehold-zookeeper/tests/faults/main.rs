//! Clients share a lock on an ensemble of three, while a test breaks its servers and its network. No client may write with
//! an old fence, and no two guards may be valid at one instant.
//!
//! Each fault lasts for a moment. `LEASEHOLD_FAULTS_SECONDS` repeats each one for that time, and prints what it found.
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod fault;

use std::process::ExitCode;
use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold_testkit::faults::{Findings, History, ProtectedResource, Proxy, Workers};
use leasehold_testkit::servers::{Zookeeper, until};
use leasehold_zookeeper::ZooKeeperStore;
use libtest_mimic::{Arguments, Failed, Trial};

use fault::Fault;

/// How many clients share the lock.
const WORKERS: usize = 4;

/// The TTL of their leases, and how long each waits for the lock before it reports that it did not get it.
const TTL: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Each has three servers of its own.
    arguments.test_threads.get_or_insert(2);
    let trials = Fault::ALL.iter().map(|fault| {
        let name = format!("zookeeper_faults::{}", fault.name());
        let fault = *fault;
        Trial::test(name, move || survives(fault))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn survives(fault: Fault) -> Result<(), Failed> {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long the operator of a test wants it to take"
    )]
    let seconds = std::env::var("LEASEHOLD_FAULTS_SECONDS").ok();
    let seconds: u64 = seconds.map_or(0, |seconds| seconds.parse().expect("a number of seconds"));
    let mut servers = Zookeeper::builder().members(3).with_links().start();
    let proxies: Vec<Proxy> = servers.ports().into_iter().map(Proxy::to).collect();
    let url = servers.url_at(proxies.iter().map(Proxy::port)) + "/faults?timeout=2s";
    let resource = ProtectedResource::open();
    let workers = Workers::start(WORKERS, &resource.path(), |_| {
        let client = Client::new(ZooKeeperStore::new(&url).unwrap());
        client.lock("the-record").ttl(TTL).wait(TTL)
    });
    until_granted(&resource, "before the fault");
    let end = SystemClock.now() + Duration::from_secs(seconds);
    loop {
        fault.happen(&mut servers, &proxies);
        until_granted(&resource, fault.name());
        if SystemClock.now() >= end {
            break;
        }
    }
    workers.stop();
    let history = resource.history();
    let found = Findings::of(&history);
    let gap = longest_gap(&history);
    report(fault, &found, gap);
    match found.violations().as_slice() {
        [] => Ok(()),
        violations => Err(violations.join("\n").into()),
    }
}

/// Waits until every worker got the lock again.
#[track_caller]
fn until_granted(resource: &ProtectedResource, when: &str) {
    for worker in 0..WORKERS {
        let before = resource.grants_to(|number| number == worker);
        until(&format!("worker {worker} has the lock, {when}"), || {
            resource.grants_to(|number| number == worker) > before + 1
        });
    }
}

/// The longest time in which no worker held the lock.
fn longest_gap(history: &History) -> Duration {
    let mut spans: Vec<(BootInstant, BootInstant)> = history
        .holds
        .iter()
        .map(|hold| (hold.granted, hold.valid_until.unwrap_or(hold.granted)))
        .collect();
    spans.sort_unstable();
    let gaps = spans.windows(2).map(|pair| pair[1].0.since(pair[0].1));
    gaps.max().unwrap_or_default()
}

#[expect(clippy::print_stderr, reason = "what a run found")]
fn report(fault: Fault, found: &Findings, gap: Duration) {
    let Findings {
        grants,
        overlaps,
        stale_refused,
        ..
    } = found;
    eprintln!(
        "{}: {grants} grants, {overlaps} overlaps without fencing, {stale_refused} stale requests refused, \
         {gap:.1?} without a grant at most",
        fault.name()
    );
}
