//! A lock that is held for a script: on files, and what needs no store.

use std::io::{PipeWriter, Write as _, pipe};
use std::process::Command;

use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::harness::{PROGRAM, Running, Sandbox};

/// A `hold` whose stdin ends when the writer is dropped.
pub(crate) struct Holding {
    pub(crate) running: Running,
    pub(crate) stdin: PipeWriter,
    stdout: String,
}

impl Holding {
    pub(crate) fn start(sandbox: &Sandbox, store: &str, args: &[&str]) -> Self {
        let (reader, stdin) = pipe().unwrap();
        let mut command = sandbox.without_store();
        command.env("LEASEHOLD_STORE", store).stdin(reader);
        command.arg("hold").args(args);
        let (running, stdout) = sandbox.spawn_named(command);
        Self {
            running,
            stdin,
            stdout,
        }
    }

    /// The line that says that the lock is held.
    #[track_caller]
    pub(crate) fn held(&self, sandbox: &Sandbox) -> Value {
        serde_json::from_str(&sandbox.line_in(&self.stdout)).unwrap()
    }
}

/// The whole life of a hold in `store`, with each way to end.
pub(crate) fn check_its_generation(sandbox: &Sandbox, store: &str, has_leases: bool) {
    let is_busy = || {
        let mut command = sandbox.without_store();
        command.env("LEASEHOLD_STORE", store);
        command.args(["run", "-n", "x", "true"]);
        match sandbox.spawn(command).wait().code() {
            0 => false,
            75 => true,
            code => panic!("{code}"),
        }
    };
    let mut holding = Holding::start(sandbox, store, &["--ttl", "10s", "x"]);
    let held = holding.held(sandbox);
    let fields: Vec<_> = held.as_object().unwrap().keys().cloned().collect();
    let expected = [
        "event",
        "expires_in_ms",
        "fence",
        "lock",
        "mode",
        "permits",
        "store",
        "ttl_ms",
        "version",
        "waited_ms",
    ];
    assert_eq!(fields, expected);
    assert_eq!(
        (&held["version"], &held["event"]),
        (&1.into(), &"held".into())
    );
    assert_eq!(
        (&held["lock"], &held["mode"]),
        (&"x".into(), &"exclusive".into())
    );
    assert!(held["fence"].as_u64().unwrap() > 0 && held["permits"].is_null());
    assert_eq!(held["expires_in_ms"].is_u64(), has_leases, "{held}");
    assert_eq!(held["ttl_ms"].is_u64(), has_leases, "{held}");
    assert!(is_busy());
    holding.stdin.write_all(b"words do not end it\n").unwrap();
    assert!(is_busy());
    drop(holding.stdin);
    let ended = holding.running.wait();
    assert_eq!((ended.code(), &*ended.stderr), (0, ""));
    assert_eq!(ended.stdout.lines().count(), 1);
    assert!(!is_busy());
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let holding = Holding::start(sandbox, store, &["--ttl", "10s", "-n", "x"]);
        holding.held(sandbox);
        holding.running.signal(signal);
        let ended = holding.running.wait();
        assert_eq!((ended.code(), &*ended.stderr), (128 + signal as i32, ""));
        assert!(!is_busy());
    }
}

#[test]
fn lock_is_held_until_stdin_or_signal() {
    let sandbox = Sandbox::new();
    check_its_generation(&sandbox, &sandbox.store(), false);
}

#[test]
fn without_stdin_only_a_signal_ends_it() {
    let sandbox = Sandbox::new();
    let holder = sandbox.start(&["hold", "--ignore-stdin", "x"]);
    until("the lock to be held", || !sandbox.is_free("x"));
    holder.signal(Signal::SIGTERM);
    assert_eq!(holder.wait().code(), 143);
    assert!(sandbox.is_free("x"));
}

#[test]
fn hold_stops_waiting_when_its_script_ends() {
    let sandbox = Sandbox::new();
    let holder = Holding::start(&sandbox, &sandbox.store(), &["x"]);
    holder.held(&sandbox);
    let waiter = Holding::start(&sandbox, &sandbox.store(), &["x"]);
    waiter.running.says("waiting for lock");
    drop(waiter.stdin);
    waiter
        .running
        .wait()
        .fails(75, &["\"x\"", "was not acquired before stdin was closed"]);
    let busy = Holding::start(&sandbox, &sandbox.store(), &["-n", "-E", "9", "x"]);
    busy.running.wait().fails(9, &["held by leasehold"]);
    let waiter = Holding::start(&sandbox, &sandbox.store(), &["x"]);
    waiter.running.says("waiting for lock");
    drop(holder.stdin);
    waiter.held(&sandbox);
    assert_eq!(holder.running.wait().code(), 0);
}

#[test]
fn who_cannot_be_told_holds_nothing() {
    let sandbox = Sandbox::new();
    let (reader, stdin) = pipe().unwrap();
    let (closed, stdout) = pipe().unwrap();
    drop(closed);
    let mut command = sandbox.leasehold();
    command.args(["hold", "x"]).stdin(reader).stdout(stdout);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(74), "{output:?}");
    assert!(sandbox.is_free("x"));
    drop(stdin);
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
    assert!(
        lines[0].starts_with("deploy: held by leasehold"),
        "{ended:?}"
    );
    assert!(lines[1].contains(r#""event":"held""#), "{ended:?}");
    assert_eq!(lines[2..], ["end 0", "deploy: free"], "{ended:?}");
}
