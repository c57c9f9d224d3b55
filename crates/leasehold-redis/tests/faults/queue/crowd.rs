//! A thousand waits of one process. They cost little while nothing happens.

use std::io;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold::look::Owner;
use leasehold_testkit::servers::{RedisServer, Reply, RespConnection};

use super::fixture::{Fixture, waiters};
use super::{note, pause};

const WAITS: usize = 1_000;

/// How long the test monitors the server.
const SPAN: Duration = Duration::from_secs(10);

/// The head asks when the lease may have ended, and the client sends a heartbeat each second.
const ATTEMPTS_MAX: usize = 20;
const COMMANDS_MAX: f64 = 50.0;

pub(super) fn scenario() {
    let mut fixture = Fixture::of(1);
    let client = fixture.client();
    let guard = fixture.hold(&client);
    let mut host = fixture.host();
    host.stay = Duration::ZERO;
    fixture.wait(&mut host, WAITS);
    // Until the replies to the first requests are read.
    pause(Duration::from_secs(1));
    let before = Usage::of(host.pid());
    let commands = commands(&fixture.servers[0]);
    let attempts = attempts(&fixture.servers[0], SystemClock.now() + SPAN);
    let commands = self::commands(&fixture.servers[0]) - commands;
    let rate = commands as f64 / SPAN.as_secs_f64();
    let after = Usage::of(host.pid());
    note(&format!(
        "{WAITS} waits: in {SPAN:?} {attempts} attempts, {rate:.0} commands per second at the \
         server, those of scripts included; the client used {:.2} s of CPU ({:.1} %), {:.1} MiB \
         resident",
        after.cpu - before.cpu,
        (after.cpu - before.cpu) / SPAN.as_secs_f64() * 100.0,
        after.resident_mib,
    ));
    assert!(attempts <= ATTEMPTS_MAX, "{attempts}");
    assert!(rate <= COMMANDS_MAX, "{rate}");
    let order = waiters(&fixture.servers[0]);
    let mut monitor = monitor(&fixture.servers[0]);
    let held = SystemClock.now();
    let first = fixture.time_from_release(guard);
    let mut turns = Vec::new();
    while turns.len() < WAITS {
        let leaves = granted(&next_line(&mut monitor).unwrap());
        // An entry may be removed once more than necessary.
        turns.extend(leaves.filter(|waiter| !turns.contains(waiter)));
    }
    fixture.await_grants(WAITS);
    let differs = turns
        .iter()
        .zip(&order)
        .position(|(turn, ticket)| turn != ticket);
    assert_eq!(differs, None, "not in the order of tickets");
    let span = SystemClock.now().since(held);
    note(&format!(
        "{WAITS} waits: first grant after {first:?}, all in {span:?}, longest gap {:?}",
        fixture.longest_gap(held)
    ));
    fixture.await_nothing_left();
    host.finish();
    fixture.assert_well();
}

/// Opens a connection on which the server reports every request that it gets.
fn monitor(server: &RedisServer) -> RespConnection {
    let mut monitor = server.connect();
    let answer = monitor.call(&["MONITOR"]).unwrap();
    assert_eq!(answer, Reply::Status("OK".into()));
    monitor
}

/// Counts the attempts of waiters until `end`.
fn attempts(server: &RedisServer, end: BootInstant) -> usize {
    let mut monitor = monitor(server);
    let mut count = 0;
    while SystemClock.now() < end {
        count += usize::from(is_attempt(&next_line(&mut monitor).unwrap()));
    }
    count
}

fn next_line(monitor: &mut RespConnection) -> io::Result<String> {
    match monitor.receive()? {
        Reply::Status(line) => Ok(line),
        other => Err(io::Error::other(format!("{other:?}"))),
    }
}

/// Whether a line of MONITOR shows an attempt: a script whose first argument is an owner.
fn is_attempt(line: &str) -> bool {
    let words: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
    match words.as_slice() {
        ["EVALSHA", _, "6", rest @ ..] => {
            let entry = rest.get(6).copied().unwrap_or_default();
            entry.parse::<Owner>().is_ok()
        }
        _ => false,
    }
}

/// Returns the waiter that leaves the queue, if a line of MONITOR shows one.
fn granted(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
    match words.as_slice() {
        ["ZREM", queue, waiter, ..] if queue.starts_with("leasehold:queue:") => {
            // Only exclusive entries are owners.
            waiter.parse::<Owner>().ok().map(|_| (*waiter).to_owned())
        }
        _ => None,
    }
}

/// Returns how many commands the server has run so far.
fn commands(server: &RedisServer) -> u64 {
    let Reply::Bulk(stats) = server.command(&["INFO", "stats"]) else {
        panic!("INFO: no text")
    };
    let field = "total_commands_processed:";
    let found = stats.lines().find_map(|line| line.strip_prefix(field));
    found.expect("a field").trim().parse().expect("a number")
}

/// The resources that a process has used.
struct Usage {
    /// In seconds.
    cpu: f64,
    resident_mib: f64,
}

impl Usage {
    fn of(pid: u32) -> Self {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
        let stat = read("stat");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
        let fields: Vec<&str> = fields.split(' ').collect();
        let ticks = |index: usize| fields[index].parse::<f64>().expect("a number");
        let status = read("status");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|text| text.split_whitespace().next());
        Self {
            // utime and stime, 100 ticks a second on Linux.
            cpu: (ticks(11) + ticks(12)) / 100.0,
            resident_mib: resident.expect("VmRSS").parse::<f64>().expect("KiB") / 1024.0,
        }
    }
}
