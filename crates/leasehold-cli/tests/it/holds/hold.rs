//! A lock that is held for a script, until its stdin ends.

use std::io::{PipeWriter, Write as _, pipe};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::harness::{PROGRAM, Sandbox};
use crate::support::program::{Running, assert_fields};
use crate::support::stores::{TestStore, on_stores};

/// A `hold` whose stdin ends when the writer is dropped.
struct Holding {
    running: Running,
    stdin: PipeWriter,
    stdout: String,
}

impl Holding {
    fn start(sandbox: &Sandbox, args: &str) -> Self {
        let (reader, stdin) = pipe().unwrap();
        let mut command = sandbox.leasehold();
        command.arg("hold").args(args.split(' ')).stdin(reader);
        let (running, stdout) = sandbox.spawn_named(command);
        Self {
            running,
            stdin,
            stdout,
        }
    }

    /// The line that says that the lock is held.
    #[track_caller]
    fn held(&self, sandbox: &Sandbox) -> Value {
        serde_json::from_str(&sandbox.line_in(&self.stdout)).unwrap()
    }
}

/// Whether `x` is refused to another client.
#[track_caller]
pub(crate) fn is_busy(sandbox: &Sandbox) -> bool {
    let ended = sandbox.run("run -n x true");
    match ended.code() {
        0 => false,
        75 => true,
        _ => panic!("{ended:?}"),
    }
}

on_stores!(lock_is_held_until_stdin_or_signal: file redis redis_quorum postgres etcd zookeeper);

/// The whole life of a hold, with each way to end.
fn lock_is_held_until_stdin_or_signal(sandbox: &TestStore) {
    let has_leases = sandbox.has_leases();
    let mut holding = Holding::start(sandbox, "--ttl 10s x");
    let held = holding.held(sandbox);
    let fields: Vec<&str> = held
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected =
        "event expires_in_ms fence lock mode permits store time ttl_ms version waited_ms";
    assert_eq!(fields.join(" "), expected);
    assert_fields(&held, json!({"version": 1, "event": "held", "lock": "x"}));
    assert_fields(&held, json!({"mode": "exclusive", "permits": null}));
    assert!(held["fence"].as_u64() > Some(0));
    assert_eq!(held["expires_in_ms"].is_u64(), has_leases, "{held}");
    assert_eq!(held["ttl_ms"].is_u64(), has_leases, "{held}");
    assert!(is_busy(sandbox));
    holding.stdin.write_all(b"words do not end it\n").unwrap();
    assert!(is_busy(sandbox));
    drop(holding.stdin);
    let ended = holding.running.wait();
    assert_eq!((ended.code(), &*ended.stderr), (0, ""));
    assert_eq!(ended.stdout.lines().count(), 1);
    assert!(!is_busy(sandbox));
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let holding = Holding::start(sandbox, "--ttl 10s -n x");
        holding.held(sandbox);
        holding.running.signal(signal);
        let ended = holding.running.wait();
        assert_eq!((ended.code(), &*ended.stderr), (128 + signal as i32, ""));
        assert!(!is_busy(sandbox));
    }
}

#[test]
fn without_stdin_only_a_signal_ends_it() {
    let sandbox = Sandbox::new();
    let holder = sandbox.start("hold --ignore-stdin x");
    until("the lock to be held", || !sandbox.is_free("x"));
    holder.signal(Signal::SIGTERM);
    let signal = holder.wait().status.signal();
    assert_eq!(signal, Some(Signal::SIGTERM as i32));
    assert!(sandbox.is_free("x"));
}

#[test]
fn hold_stops_waiting_when_its_script_ends() {
    let sandbox = Sandbox::new();
    let holder = Holding::start(&sandbox, "x");
    holder.held(&sandbox);
    let waiter = Holding::start(&sandbox, "-v x");
    waiter.running.says("waiting for ");
    drop(waiter.stdin);
    let reason = ["\"x\"", "was not acquired before stdin was closed"];
    waiter.running.wait().fails(75, &reason);
    let busy = Holding::start(&sandbox, "-n -E 9 x");
    busy.running.wait().fails(9, &["held by leasehold"]);
    let waiter = Holding::start(&sandbox, "-v x");
    waiter.running.says("waiting for ");
    drop(holder.stdin);
    waiter.held(&sandbox);
    assert_eq!(holder.running.wait().code(), 0);
}

on_stores!(untold_script_holds_nothing: file redis redis_quorum);

fn untold_script_holds_nothing(sandbox: &TestStore) {
    let (reader, stdin) = pipe().unwrap();
    let (closed, stdout) = pipe().unwrap();
    drop(closed);
    let mut command = sandbox.leasehold();
    command.args(["hold", "x"]).stdin(reader).stdout(stdout);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(74), "{output:?}");
    assert!(!is_busy(sandbox));
    drop(stdin);
}

#[test]
fn redis_loss_is_a_second_line_and_76() {
    let (sandbox, server) = Sandbox::on_redis();
    let holding = Holding::start(&sandbox, "--ttl 3s x");
    holding.held(&sandbox);
    server.command(&["DEL", "x"]);
    let ended = holding.running.wait();
    ended.fails(76, &[r#"lost lock "x": the lease vanished"#]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{ended:?}");
    let lost: Value = serde_json::from_str(lines[1]).unwrap();
    assert_fields(&lost, json!({"version": 1, "event": "lost", "lock": "x"}));
    assert!(lost["reason"].as_str().unwrap().contains("vanished"));
}

#[test]
fn unnoticed_redis_loss_is_reported_at_end() {
    let (sandbox, server) = Sandbox::on_redis();
    let holding = Holding::start(&sandbox, "--ttl 60s x");
    holding.held(&sandbox);
    server.command(&["DEL", "x"]);
    drop(holding.stdin);
    let ended = holding.running.wait();
    ended.fails(76, &[r#"lost lock "x": the lease vanished"#]);
    assert!(ended.stdout.contains(r#""event":"lost""#), "{ended:?}");
}

#[test]
fn redis_permits_and_readers_are_held_together() {
    let (sandbox, _server) = Sandbox::on_redis();
    for (option, mode, permits) in [
        ("--permits=2", "permit", json!(2)),
        ("--shared", "shared", json!(null)),
    ] {
        let take = || Holding::start(&sandbox, &format!("-n {option} x"));
        let holders = [take(), take()];
        for holder in &holders {
            let fields = json!({"mode": mode, "permits": permits});
            assert_fields(&holder.held(&sandbox), fields);
        }
        if mode == "permit" {
            take().running.wait().fails(75, &[]);
        }
        assert!(is_busy(&sandbox));
        for holder in holders {
            drop(holder.stdin);
            holder.running.wait().succeeds();
        }
    }
}

/// The example in the help of `subcommand`.
pub(crate) fn example(sandbox: &Sandbox, subcommand: &str) -> String {
    let help = sandbox.run(&[subcommand, "--help"]);
    let lines = help.stdout.lines();
    let lines = lines.skip_while(|line| *line != "Examples:").skip(1);
    let lines = lines.map_while(|line| line.strip_prefix("  "));
    let script: Vec<&str> = lines.collect();
    assert!(script.len() >= 4, "{help:?}");
    script.join("\n")
}

/// Runs a script of bash that calls `leasehold` by its name.
pub(crate) fn bash(sandbox: &Sandbox, script: &str) -> Command {
    let mut command = Command::new("bash");
    sandbox.furnish(&mut command);
    let folder = std::path::Path::new(PROGRAM).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", folder.display()));
    command.env("LEASEHOLD_STORE", sandbox.store());
    command.args(["-c", script]);
    command
}

#[test]
fn script_in_the_help_works() {
    let sandbox = Sandbox::new();
    let script = example(&sandbox, "hold");
    assert!(script.contains("./deploy.sh"), "{script}");
    let inside = "leasehold status deploy; echo \"$held\"";
    let script = script.replace("./deploy.sh", inside);
    let script = format!("{script}\necho \"end $?\"; leasehold status deploy");
    let ended = sandbox.spawn(bash(&sandbox, &script)).wait();
    assert_eq!((ended.code(), &*ended.stderr), (0, ""), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let held = "deploy: held by leasehold";
    assert!(lines[0].starts_with(held), "{ended:?}");
    assert!(lines[1].contains(r#""event":"held""#), "{ended:?}");
    assert_eq!(lines[2..], ["end 0", "deploy: free"], "{ended:?}");
}
