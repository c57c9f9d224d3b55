//! Waiting on Redis: in order, and as `status` shows it.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, Reply, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::run::on_each_store::{until_waiting, waiting};
use crate::support::harness::Sandbox;
use crate::support::processes::until_stopped;
use crate::support::program::{Running, assert_fields, sh};
use crate::support::pty::OnTerminal;

/// Begins to wait for `x`, and notes `mark` in the file `order` when granted.
fn wait_behind(sandbox: &Sandbox, mark: usize, waiting: usize) -> Running {
    let script = format!("echo {mark} >> order");
    let waiter = sandbox.start(&sh("run x", &script));
    until_waiting(sandbox, waiting);
    waiter
}

fn status(sandbox: &Sandbox) -> Value {
    sandbox.run("status --json x").json()
}

#[test]
fn status_names_waiters_and_their_places() {
    let (sandbox, _server) = Sandbox::on_redis();
    let _holder = sandbox.hold("x", "held");
    let first = sandbox.start("run x true");
    until_waiting(&sandbox, 1);
    let second = sandbox.start("run -s x true");
    until_waiting(&sandbox, 2);
    let lines = [
        "x: held by leasehold (pid ".to_owned(),
        format!("x: 1st in the queue: leasehold (pid {} on ", first.pid()),
        format!("x: 2nd in the queue: leasehold (pid {} on ", second.pid()),
    ];
    until("the status names all, and for how long they wait", || {
        let text = sandbox.run("status x").stdout;
        let mut shown = text.lines().zip(&lines);
        let named = shown.all(|(line, begin)| line.starts_with(begin));
        let last = text.lines().last().unwrap_or_default();
        let told = last.contains("), shared, waiting for about ");
        text.lines().count() == lines.len() && named && told
    });
    let status = status(&sandbox);
    let waiters = status["waiters"].as_array().unwrap();
    assert_eq!(status["held"], true);
    assert_fields(&waiters[0], json!({"position": 1, "mode": "exclusive"}));
    assert_fields(&waiters[1], json!({"position": 2, "mode": "shared"}));
    assert_eq!(waiters[1]["client"]["pid"], second.pid());
    assert!(waiters[1]["waiting_ms"].as_u64().unwrap() >= 1_000);
}

#[test]
fn lock_between_holders_is_shown_as_free() {
    let (sandbox, server) = Sandbox::on_redis();
    let waiter = "0123456789abcdef.0123456789abcdef0123456789abcdef";
    server.command(&["SET", "x", "leasehold:next", "PX", "600000"]);
    server.command(&["ZADD", "leasehold:queue:{x}:x", "1700000000000000", waiter]);
    let text = sandbox.run("status x").stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0], "x: free");
    let begin = "x: 1st in the queue: client 0123456789abcdef, waiting for about ";
    assert!(lines[1].starts_with(begin), "{text}");
    let json = status(&sandbox);
    assert_eq!(json["held"], false);
    assert_eq!(json["waiters"][0]["position"], 1);
    assert!(json["waiters"][0]["client"]["pid"].is_null());
}

#[test]
fn killed_waiters_leave_the_queue_behind_a_live_one() {
    let (sandbox, _server) = Sandbox::on_redis();
    let _holder = sandbox.hold("x", "held");
    let alive = wait_behind(&sandbox, 0, 1);
    let killed: Vec<Running> = (1..4)
        .map(|mark| wait_behind(&sandbox, mark, mark + 1))
        .collect();
    for waiter in &killed {
        waiter.signal(Signal::SIGKILL);
    }
    until("only the live waiter is in the queue", || {
        waiting(&sandbox) == [i64::from(alive.pid())]
    });
}

#[test]
fn a_killed_waiter_is_passed_over_at_once() {
    let (sandbox, server) = Sandbox::on_redis();
    let holder = sandbox.hold("x", "held");
    let killed = wait_behind(&sandbox, 0, 1);
    let waiter = wait_behind(&sandbox, 1, 2);
    killed.signal(Signal::SIGKILL);
    until("the server lost sight of it", || connections(&server) == 2);
    let freed = SystemClock.now();
    sandbox.finish(holder);
    let ended = waiter.wait();
    let took = SystemClock.now().since(freed);
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(took < FAR_BELOW_A_TTL, "{took:?}");
    assert_eq!(sandbox.lines_in("order"), ["1"]);
    assert!(waiting(&sandbox).is_empty());
}

#[test]
fn stopped_redis_waiter_is_served_afterwards() {
    let (sandbox, _server) = Sandbox::on_redis();
    let holder = sandbox.hold("x", "held");
    let stopped = wait_behind(&sandbox, 0, 1);
    let waiter = wait_behind(&sandbox, 1, 2);
    stopped.signal(Signal::SIGSTOP);
    until_stopped(stopped.pid());
    let freed = SystemClock.now();
    sandbox.finish(holder);
    waiter.wait().succeeds();
    let took = SystemClock.now().since(freed);
    assert!(took < FAR_BELOW_A_TTL, "{took:?}");
    stopped.signal(Signal::SIGCONT);
    stopped.wait().succeeds();
    assert_eq!(sandbox.lines_in("order"), ["1", "0"]);
}

#[test]
fn terminal_shows_the_place_until_interrupted() {
    let (sandbox, _server) = Sandbox::on_redis();
    let holder = sandbox.hold("x", "held");
    let first = wait_behind(&sandbox, 0, 1);
    let mut terminal = OnTerminal::leasehold(&sandbox, "run x true");
    let held = format!("for \"x\", held by pid {} on ", holder.pid());
    terminal.shows(&held);
    terminal.shows(", 2nd in the queue, running sh");
    first.signal(Signal::SIGINT);
    assert_eq!(first.wait().code(), 130);
    terminal.shows(", 1st in the queue, running sh");
    terminal.types(CTRL_C);
    assert_eq!(terminal.exit_code(), 130);
    assert_eq!(waiting(&sandbox), [0; 0]);
    drop(holder);
}

#[test]
fn programs_are_told_each_place() {
    let (sandbox, _server) = Sandbox::on_redis();
    let _holder = sandbox.hold("x", "held");
    let first = wait_behind(&sandbox, 0, 1);
    let second = sandbox.start("run --json x true");
    second.says(r#""position":2"#);
    first.signal(Signal::SIGTERM);
    second.says(r#""position":1"#);
}

#[test]
fn nested_sharing_goes_ahead_of_a_writer() {
    let (sandbox, _server) = Sandbox::on_redis();
    let script = "echo $$ > held; while [ ! -e go ]; do sleep 0.02; done
        \"$LEASEHOLD\" run -n -s x -- echo once && \"$LEASEHOLD\" run -s x -- echo again";
    let reader = sandbox.start(&sh("run -s x", script));
    sandbox.pid_in("held");
    let writer = wait_behind(&sandbox, 0, 1);
    sandbox.let_go();
    assert_eq!(reader.wait().succeeds().stdout, "once\nagain\n");
    writer.wait().succeeds();
}

/// The number of our connections that the server has.
fn connections(server: &RedisServer) -> usize {
    match server.command(&["CLIENT", "LIST"]) {
        Reply::Bulk(list) => list.matches(" name=leasehold ").count(),
        other => panic!("CLIENT LIST: {other:?}"),
    }
}

/// The server skips a dead waiter in the same step, and a silent one after a second. A stalled machine may
/// take longer, but it must not take a TTL, which is 30 s.
const FAR_BELOW_A_TTL: Duration = Duration::from_secs(10);

const CTRL_C: &str = "\x03";
