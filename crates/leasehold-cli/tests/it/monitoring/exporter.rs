//! `exporter` and `wait`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisSet, Reply, until};

use crate::support::harness::Sandbox;
use crate::support::program::Running;

/// Starts an exporter that serves the metrics of the sandbox's store, and returns its address.
pub(crate) fn serve(sandbox: &Sandbox) -> (Running, String) {
    let exporter = sandbox.start("exporter --verbose --listen 127.0.0.1:0");
    exporter.says("/metrics\n");
    let said = exporter.stderr();
    let (_, rest) = said.split_once("serving metrics at http://").unwrap();
    let (address, _) = rest.split_once('/').unwrap();
    (exporter, address.to_owned())
}

/// What the exporter at `address` answers, with its head.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The value of a metric without further labels.
fn value(text: &str, metric: &str) -> f64 {
    let line = text.lines().find(|line| {
        let rest = line.strip_prefix(&format!("leasehold_store_{metric}"));
        rest.is_some_and(|rest| rest.starts_with('{'))
    });
    let line = line.unwrap_or_else(|| panic!("no {metric} in {text}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[test]
fn metrics_count_what_is_held() {
    let sandbox = Sandbox::new();
    let metrics = |args: &str| sandbox.run(args).succeeds().stdout;
    let free = metrics("exporter");
    assert_eq!((value(&free, "up"), value(&free, "locks_held")), (1.0, 0.0));
    assert!(!free.contains("oldest_holder"), "{free}");
    let seconds = || SystemClock.wall().as_micros() as f64 / 1e6;
    let before = seconds();
    let holder = sandbox.hold("x", "pid");
    let held = metrics("exporter");
    assert_eq!(value(&held, "locks_held"), 1.0);
    let since = value(&held, "oldest_holder_timestamp_seconds");
    assert!((before..seconds()).contains(&since), "{before}: {held}");
    assert_eq!(value(&metrics("exporter y*"), "locks_held"), 0.0);
    sandbox.finish(holder);
}

#[test]
fn redis_exporter_counts_waiters_and_votes() {
    let (sandbox, mut servers) = Sandbox::on_quorum(3);
    let holder = sandbox.hold("x", "pid");
    let waiter = sandbox.start("run -v x true");
    waiter.says("waiting");
    until("the waiter is counted", || {
        let text = sandbox.run("exporter").stdout;
        value(&text, "waiters") == 1.0
    });
    servers[0].kill();
    let text = sandbox.run("exporter").stdout;
    let votes = text
        .lines()
        .filter(|line| line.contains("member_has_vote{"));
    let votes: Vec<_> = votes.map(|line| line.ends_with(" 1")).collect();
    assert_eq!(votes, [false, true, true], "{text}");
    sandbox.finish(holder);
    waiter.wait();
}

#[test]
fn redis_commands_that_look_write_nothing() {
    let servers = RedisSet::start(3);
    let sandbox = Sandbox::on(&servers.urls());
    let (_exporter, address) = serve(&sandbox);
    for _ in 0..2 {
        let text = get(&address, "/metrics");
        assert_eq!(value(&text, "up"), 1.0);
        assert_eq!(text.matches("member_has_vote{").count(), 3, "{text}");
        for call in ["exporter", "ls", "status x", "waiters x", "wait x"] {
            sandbox.run(call).succeeds();
        }
    }
    for server in servers.iter() {
        assert_eq!(server.command(&["DBSIZE"]), Reply::Integer(0));
        let Reply::Bulk(stats) = server.command(&["INFO", "commandstats"]) else {
            panic!("no statistics");
        };
        for write in [
            "cmdstat_eval",
            "cmdstat_fcall",
            "cmdstat_hset",
            "cmdstat_set:",
        ] {
            assert!(!stats.contains(write), "{write} in {stats}");
        }
    }
}

#[test]
fn port_answers_each_request_anew() {
    let sandbox = Sandbox::new();
    let (_exporter, address) = serve(&sandbox);
    let get = |path: &str| get(&address, path);
    let answer = get("/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("text/plain; version=0.0.4"), "{answer}");
    assert_eq!(value(&answer, "locks_held"), 0.0);
    let holder = sandbox.hold("x", "pid");
    assert_eq!(value(&get("/metrics"), "locks_held"), 1.0);
    let other = get("/");
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
    let taken = sandbox.run(&format!("exporter --listen {address}"));
    taken.fails(125, &[&format!("cannot listen on {address}")]);
    sandbox.finish(holder);
}

#[test]
fn text_file_is_replaced() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("leasehold.prom");
    let path = file.to_str().unwrap();
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    let arguments = ["exporter", "--textfile", path, "--every", "100ms"];
    let _exporter = sandbox.start(&arguments);
    until("the first metrics", || read().contains("locks_held"));
    let holder = sandbox.hold("x", "pid");
    until("the next metrics", || value(&read(), "locks_held") == 1.0);
    let nowhere = sandbox.run("exporter --textfile /nowhere/a.prom");
    nowhere.fails(74, &["/nowhere/a.prom"]);
    sandbox.finish(holder);
}

#[test]
fn wait_ends_when_the_lock_is_free() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run("wait x").code(), 0);
    let holder = sandbox.hold("x", "pid");
    let late = sandbox.run("wait -w 300ms x");
    late.fails(75, &["gave up after 300ms", "held by leasehold"]);
    assert_eq!(sandbox.run("wait -w 0 -E 9 x").code(), 9);
    let waiting = sandbox.start("wait x");
    sandbox.finish(holder);
    assert_eq!(waiting.wait().code(), 0);
    assert!(sandbox.is_free("x"), "it is not taken");
}
