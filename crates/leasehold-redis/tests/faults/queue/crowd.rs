//! A thousand waits of one process, which cost little while nothing happens.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use leasehold::Owner;
use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold_testkit::servers::{RedisServer, Reply, RespConnection};

use super::note;
use super::scene::{Scene, waiters};
use crate::world::pause;

const WAITS: usize = 1_000;

/// How long the server is listened to.
const SPAN: Duration = Duration::from_secs(10);

/// So many may ask more than once in a second: the head, and the next one in case it is dead.
const MAY_ASK_OFTEN: usize = 2;

pub(super) fn scenario() {
    let mut scene = Scene::of(1);
    let client = scene.client();
    let guard = scene.hold(&client);
    let mut host = scene.host();
    host.stay = Duration::ZERO;
    scene.wait(&mut host, WAITS);
    // Those who were in the first burst are answered, and the machine has come to rest.
    pause(Duration::from_secs(1));
    let before = Usage::of(host.pid());
    let commands = commands(&scene.servers[0]);
    let asked = listen(&scene.servers[0], SystemClock.now() + SPAN);
    let commands = self::commands(&scene.servers[0]) - commands;
    let after = Usage::of(host.pid());
    let often: Vec<_> = asked
        .iter()
        .filter(|(_, times)| most_within_a_second(times) > 1)
        .map(|(waiter, times)| (waiter, times.len()))
        .collect();
    let attempts: usize = asked.values().map(Vec::len).sum();
    note(&format!(
        "{WAITS} waits: in {SPAN:?} {attempts} attempts by {} waiters, {:.0} commands per second \
         at the server, those of scripts included; the client used {:.2} s of CPU ({:.1} %), \
         {:.1} MiB resident; more than once a second asked: {often:?}",
        asked.len(),
        commands as f64 / SPAN.as_secs_f64(),
        after.cpu - before.cpu,
        (after.cpu - before.cpu) / SPAN.as_secs_f64() * 100.0,
        after.resident_mib,
    ));
    assert!(attempts > WAITS / 2, "who waits asks now and then");
    assert!(often.len() <= MAY_ASK_OFTEN, "{often:?}");
    let order = waiters(&scene.servers[0]);
    let mut monitor = monitor(&scene.servers[0]);
    let held = SystemClock.now();
    let first = scene.time_from_release(guard);
    let mut turns = Vec::new();
    while turns.len() < WAITS {
        let leaves = granted(&next_line(&mut monitor).unwrap());
        // It may be taken out once more than need be.
        turns.extend(leaves.filter(|waiter| !turns.contains(waiter)));
    }
    scene.await_grants(WAITS);
    let differs = turns
        .iter()
        .zip(&order)
        .position(|(turn, ticket)| turn != ticket);
    assert_eq!(differs, None, "not in the order of tickets");
    let span = SystemClock.now().since(held);
    note(&format!(
        "{WAITS} waits: first grant after {first:?}, all in {span:?}, longest gap {:?}",
        scene.longest_gap(held)
    ));
    scene.await_nothing_left();
    host.finish();
    scene.assert_well();
}

/// A connection on which the server tells everything that it is asked.
fn monitor(server: &RedisServer) -> RespConnection {
    let mut monitor = server.connect();
    let answer = monitor.call(&["MONITOR"]).unwrap();
    assert_eq!(answer, Reply::Status("OK".into()));
    monitor
}

/// When each waiter made an attempt in turn, in seconds by the server's clock, until `end`.
fn listen(server: &RedisServer, end: BootInstant) -> HashMap<String, Vec<f64>> {
    let mut monitor = monitor(server);
    let mut asked = HashMap::<String, Vec<f64>>::new();
    while SystemClock.now() < end {
        if let Some((waiter, at)) = attempt(&next_line(&mut monitor).unwrap()) {
            asked.entry(waiter).or_default().push(at);
        }
    }
    asked
}

fn next_line(monitor: &mut RespConnection) -> io::Result<String> {
    match monitor.receive()? {
        Reply::Status(line) => Ok(line),
        other => Err(io::Error::other(format!("{other:?}"))),
    }
}

/// Who makes an attempt in turn, and when, if that is what the line of MONITOR tells.
fn attempt(line: &str) -> Option<(String, f64)> {
    let at = line.split(' ').next()?.parse().ok()?;
    let words: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
    // Six keys has only the script of the attempt; the waiter is its fifth argument.
    match words.as_slice() {
        ["EVALSHA", _, "6", rest @ ..] => Some(((*rest.get(10)?).to_owned(), at)),
        _ => None,
    }
}

/// Who leaves the queue as it is granted the lock, or has it left to it, if that is what the line of MONITOR
/// tells.
fn granted(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
    match words.as_slice() {
        ["ZREM", queue, waiter] | ["ZREM", queue, waiter, _]
            if queue.starts_with("leasehold:queue:") =>
        {
            // Not the entry of one that would read.
            waiter.parse::<Owner>().ok().map(|_| (*waiter).to_owned())
        }
        _ => None,
    }
}

/// The most that fall into one second.
fn most_within_a_second(times: &[f64]) -> usize {
    let within = |first: usize| {
        let end = times[first] + 1.0;
        times[first..].iter().take_while(|at| **at < end).count()
    };
    (0..times.len()).map(within).max().unwrap_or_default()
}

/// How many commands the server has run so far.
fn commands(server: &RedisServer) -> u64 {
    let Reply::Bulk(stats) = server.command(&["INFO", "stats"]) else {
        panic!("INFO: no text")
    };
    let field = "total_commands_processed:";
    let found = stats.lines().find_map(|line| line.strip_prefix(field));
    found.expect("a field").trim().parse().expect("a number")
}

/// What a process has used.
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
