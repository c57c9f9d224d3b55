#![expect(
    clippy::print_stdout,
    reason = "the holder talks to its test through a pipe"
)]

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;

use leasehold::clock::{Clock, SystemClock};
use leasehold_testkit::faults::{Findings, ProtectedResource, ResourceClient};
use leasehold_testkit::servers::{RedisServer, until};

use super::fixture::{Fixture, LOCK, LONG};
use super::naive::{Counted, Naive};
use crate::set::{self, MAX_TTL, TTL};
use leasehold_testkit::SecondProcess;

/// "A client acquires the lock, pauses for garbage collection, and goes on working when its lease is long
/// over" (the same article). No lock can prevent the attempt, but the fence can.
pub(super) fn scenario() {
    naive_holder_writes_over_the_next_one();
    paused_holder_reports_loss_and_is_fenced_off();
}

fn naive_holder_writes_over_the_next_one() {
    let fixture = Fixture::of_three(&RedisServer::builder());
    let resource = ProtectedResource::open();
    let ports = fixture
        .servers
        .iter()
        .map(|server| server.port().to_string());
    let mut holder = start("naive", &resource, ports);
    assert_eq!(holder.hear(), "checked");
    holder.pause();
    let [_, mut bob] = fixture.naive(Counted::FromAsking);
    let mut second = None;
    until("the lease is over", || {
        second = bob.acquire(LOCK, LONG);
        second.is_some()
    });
    let mut record = ResourceClient::connect(&resource.path()).unwrap();
    let base = record.plain_read().unwrap();
    record.plain_add_one(base).unwrap();
    holder.resume();
    holder.tell("go on");
    assert_eq!(holder.hear(), "written");
    assert!(
        second.expect("a belief").is_valid(),
        "two were inside at once"
    );
    assert_eq!(Findings::of(&resource.history()).plain_updates_lost, 1);
    holder.finish();
}

fn paused_holder_reports_loss_and_is_fenced_off() {
    let fixture = Fixture::of_three(&RedisServer::builder());
    let [_, bob] = fixture.ours(MAX_TTL);
    let resource = ProtectedResource::open();
    let mut holder = start("ours", &resource, fixture.alice_urls().into_iter());
    assert_eq!(holder.hear(), "checked");
    holder.pause();
    let guard = bob.lock(LOCK).ttl(TTL).wait(LONG).acquire();
    let guard = guard.expect("the lease is over");
    let mut record = ResourceClient::connect(&resource.path()).unwrap();
    let fence = guard.fence().get();
    let base = record.read(fence).unwrap().expect("the newest fence");
    assert!(record.add_one(fence, base).unwrap());
    holder.resume();
    holder.tell("go on");
    let said = holder.hear();
    let reasons = ["Expired", "Paused"];
    let expected = reasons.map(|reason| format!("valid: false, {reason}, let in: false"));
    assert!(expected.contains(&said), "{said}");
    let found = Findings::of(&resource.history());
    assert_eq!(found.violations(), [""; 0]);
    assert_eq!(found.stale_refused, 1);
    holder.finish();
}

pub(crate) const VERB: &str = "--holder";

fn start(
    kind: &str,
    resource: &ProtectedResource,
    members: impl Iterator<Item = String>,
) -> SecondProcess {
    let own = [
        VERB.into(),
        kind.into(),
        resource.path().display().to_string(),
    ];
    SecondProcess::start(own.into_iter().chain(members))
}

/// The holder takes the lock, checks it, and writes. It does not notice the pause between the check and the
/// write.
pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let [kind, resource, members @ ..] = arguments else {
        panic!("a holder needs a kind, a resource and members: {arguments:?}")
    };
    let record = ResourceClient::connect(Path::new(resource)).expect("the resource");
    match kind.as_str() {
        "naive" => naive(record, members),
        _ => ours(record, members),
    }
    // Waits until the test has seen enough.
    let _ = std::io::stdin().lock().lines().next();
    ExitCode::SUCCESS
}

fn naive(mut record: ResourceClient, members: &[String]) {
    let ports: Result<Vec<u16>, _> = members.iter().map(|port| port.parse()).collect();
    let mut client = Naive::new("paused", &ports.expect("ports"), Counted::FromAsking);
    let mut base = 0;
    // Repeats this if the machine was so slow that the lease ended.
    until("it holds the lock", || {
        let belief = client.acquire(LOCK, TTL);
        base = record.plain_read().expect("the resource");
        belief.is_some_and(|belief| belief.is_valid())
    });
    say("checked");
    wait();
    record.plain_add_one(base).expect("the resource");
    say("written");
}

fn ours(mut record: ResourceClient, members: &[String]) {
    let lock = set::client(members, MAX_TTL).lock(LOCK).ttl(TTL).wait(LONG);
    let mut held = None;
    until("it holds the lock", || {
        let asked = SystemClock.now();
        let guard = lock.acquire().expect("a free lock");
        let fence = guard.fence().get();
        let granted = record.granted(0, fence, asked, SystemClock.now());
        granted.expect("the resource");
        let base = record.read(fence).expect("the resource");
        let is_valid = guard.is_valid();
        held = Some((guard, fence, base.expect("the newest fence")));
        is_valid
    });
    let (guard, fence, base) = held.expect("a guard");
    say("checked");
    wait();
    let is_valid = guard.is_valid();
    let reason = guard.wait_lost();
    let is_let_in = record.add_one(fence, base).expect("the resource");
    say(&format!(
        "valid: {is_valid}, {reason:?}, let in: {is_let_in}"
    ));
}

fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("a reader");
}

fn wait() {
    let line = std::io::stdin().lock().lines().next();
    line.expect("a test that goes on").expect("a pipe");
}
