//! `--min-hold`: a lock is kept for a time, also when the job is shorter than the difference between the clocks of
//! its machines.

use std::fs;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::{Reply, until};
use nix::sys::signal::Signal;

use crate::support::harness::Sandbox;
use crate::support::processes::{guardian_of, signal, until_gone};
use crate::support::program::{Running, sh};
use crate::support::stores::{TestStore, on_stores};

const SECOND: Duration = Duration::from_secs(1);

/// Starts a run with `options` whose command has ended with 3, and whose lock is kept.
fn staying(sandbox: &Sandbox, options: &str) -> Running {
    let run = sandbox.start(&sh(&format!("run -v {options} x"), "exit 3"));
    run.says("--min-hold keeps the lock for");
    run
}

#[test]
fn signal_ends_the_stay_with_the_commands_code() {
    let sandbox = Sandbox::new();
    let run = staying(&sandbox, "--min-hold 1h");
    assert!(!sandbox.is_free("x"));
    run.signal(Signal::SIGTERM);
    assert_eq!(run.wait().code(), 3);
    assert!(sandbox.is_free("x"));
}

#[test]
fn loss_during_the_stay_keeps_the_code() {
    let sandbox = Sandbox::new();
    let run = staying(&sandbox, "--min-hold 1h");
    fs::remove_dir_all(sandbox.path("locks")).unwrap();
    run.signal(Signal::SIGTERM);
    assert_eq!(run.wait().code(), 3);
}

#[test]
fn redis_loss_while_kept_has_no_exit_code() {
    let (sandbox, server) = Sandbox::on_redis();
    let staying = staying(&sandbox, "--ttl 3s --min-hold 1h");
    server.command(&["DEL", "x"]);
    let told = ["warning", "not kept for --min-hold", "vanished"];
    staying.wait().fails(3, &told);
}

#[test]
fn run_asked_to_end_does_not_stay() {
    let sandbox = Sandbox::new();
    sandbox.gate("gate");
    let script = "trap 'exit 4' TERM; echo $$ > pid; read line < gate";
    let run = sandbox.start(&sh("run --min-hold 1h x", script));
    sandbox.pid_in("pid");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.wait().code(), 4);
    assert!(sandbox.is_free("x"));
}

#[test]
fn a_command_that_did_not_start_holds_nothing() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run("run --min-hold 1h x -- ./nothing-of-that-name");
    ended.fails(127, &["nothing-of-that-name"]);
    assert!(sandbox.is_free("x"));
}

#[test]
fn a_killed_guardian_leaves_nothing_to_be_kept() {
    let sandbox = Sandbox::new();
    let run = sandbox.hold("--min-hold 1h x", "pid");
    signal(guardian_of(sandbox.pid_in("pid")), Signal::SIGKILL);
    run.wait().fails(125, &["guardian"]);
    assert!(sandbox.is_free("x"));
}

on_stores!(lock_is_kept_and_released_in_time: file redis redis_quorum);

fn lock_is_kept_and_released_in_time(sandbox: &TestStore) {
    let began = SystemClock.now();
    let ended = sandbox.run(&sh("run --ttl 60s --min-hold 3s x", "echo ran; exit 3"));
    assert_eq!((ended.code(), &*ended.stdout), (3, "ran\n"));
    assert_eq!(ended.stderr, "");
    assert!(SystemClock.now().since(began) >= 3 * SECOND);
    assert!(sandbox.is_free("x"), "long before the TTL");
}

#[test]
fn signal_leaves_the_redis_lease_of_a_stay() {
    let (sandbox, _servers) = Sandbox::on_quorum(3);
    let staying = staying(&sandbox, "--min-hold 1h");
    staying.signal(Signal::SIGTERM);
    assert_eq!(staying.wait().code(), 3);
    let next = sandbox.run("run -n x true");
    next.fails(75, &["held by"]);
}

#[test]
fn expired_redis_lock_is_lost_without_a_check() {
    let (sandbox, server) = Sandbox::on_redis();
    let running = sandbox.hold("--ttl 3s --min-hold 50s x", "pid");
    running.signal(Signal::SIGSTOP);
    sandbox.let_go();
    until_gone(sandbox.pid_in("pid"));
    until("the lease ends", || {
        server.command(&["EXISTS", "x"]) == Reply::Integer(0)
    });
    running.signal(Signal::SIGCONT);
    running.wait().fails(76, &["lost lock \"x\""]);
}

#[test]
fn redis_outage_after_the_command_costs_nothing() {
    let (sandbox, server) = Sandbox::on_redis();
    // Its deadline passes before it gives the store up.
    let job = format!("kill -STOP {}; exit 3", server.pid());
    let ended = sandbox.run(&sh("run --ttl 3s --min-hold 50s x", &job));
    ended.fails(
        3,
        &["warning", "not kept for --min-hold", "renewals failed"],
    );
    server.thaw();
}

#[test]
fn three_machines_run_one_redis_job_once() {
    let (sandbox, _servers) = Sandbox::on_quorum(3);
    let page = include_str!("../../../../../docs/recipes/cron.md");
    let (_, crontab) = page.split_once(" leasehold run ").unwrap();
    let (options, _) = crontab.split_once(" -- ").unwrap();
    let options = options.replace("--min-hold 50s", "--min-hold 12s");
    let args = sh(&format!("run {options}"), "echo ran >> runs");
    // Three machines whose clocks agree, so that each may get one of the three servers, and one that is late.
    let machines = [(); 3].map(|()| sandbox.start(&args));
    sandbox.line_in("runs");
    sandbox.run(&args).fails(75, &[]);
    let mut codes = machines.map(|machine| machine.wait().code());
    codes.sort_unstable();
    assert_eq!(codes, [0, 75, 75]);
    assert_eq!(sandbox.lines_in("runs"), ["ran"]);
}
