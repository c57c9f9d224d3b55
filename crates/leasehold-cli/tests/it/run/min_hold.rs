//! `--min-hold` on files, and what is refused.

use std::fs;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use nix::sys::signal::Signal;

use crate::support::harness::Sandbox;
use crate::support::processes::{guardian_of, signal};

#[test]
fn min_hold_keeps_file_locks_by_staying() {
    let sandbox = Sandbox::new();
    let began = SystemClock.now();
    let script = "echo ran; exit 3";
    let ended = sandbox.run(&["run", "--min-hold", "1500ms", "x", "--", "sh", "-c", script]);
    assert_eq!((ended.code(), &*ended.stdout), (3, "ran\n"));
    assert!(
        ended.stderr.contains("--min-hold keeps the lock for"),
        "{ended:?}"
    );
    assert!(SystemClock.now().since(began) >= Duration::from_millis(1_500));
    assert!(sandbox.is_free("x"));
}

#[test]
fn signal_ends_the_stay_with_the_commands_code() {
    let sandbox = Sandbox::new();
    let run = sandbox.start(&["run", "--min-hold", "1h", "x", "--", "sh", "-c", "exit 3"]);
    run.says("--min-hold keeps the lock for");
    assert!(!sandbox.is_free("x"));
    run.signal(Signal::SIGTERM);
    assert_eq!(run.wait().code(), 3);
    assert!(sandbox.is_free("x"));
}

#[test]
fn loss_during_the_stay_keeps_the_code() {
    let sandbox = Sandbox::new();
    let run = sandbox.start(&["run", "--min-hold", "1h", "x", "--", "sh", "-c", "exit 3"]);
    run.says("--min-hold keeps the lock for");
    fs::remove_dir_all(sandbox.path("locks")).unwrap();
    run.signal(Signal::SIGTERM);
    run.wait().fails(3, &["warning", "not kept for --min-hold"]);
}

#[test]
fn run_asked_to_end_does_not_stay() {
    let sandbox = Sandbox::new();
    sandbox.gate("gate");
    let script = "trap 'exit 4' TERM; echo $$ > pid; read line < gate";
    let run = sandbox.start(&["run", "--min-hold", "1h", "x", "--", "sh", "-c", script]);
    sandbox.pid_in("pid");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.wait().code(), 4);
    assert!(sandbox.is_free("x"));
}

#[test]
fn a_command_that_did_not_start_holds_nothing() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&[
        "run",
        "--min-hold",
        "1h",
        "x",
        "--",
        "./nothing-of-that-name",
    ]);
    ended.fails(127, &["nothing-of-that-name"]);
    assert!(sandbox.is_free("x"));
}

#[test]
fn a_killed_guardian_leaves_nothing_to_be_kept() {
    let sandbox = Sandbox::new();
    let script = "echo $$ > pid; exec sleep 1000";
    let run = sandbox.start(&["run", "--min-hold", "1h", "x", "--", "sh", "-c", script]);
    let guardian = guardian_of(sandbox.pid_in("pid"));
    signal(guardian, Signal::SIGKILL);
    run.wait().fails(125, &["guardian"]);
    assert!(sandbox.is_free("x"));
}
