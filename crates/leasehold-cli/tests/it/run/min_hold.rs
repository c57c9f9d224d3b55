//! `--min-hold`: a lock is kept for a time, also when the job is shorter than the difference between the clocks of
//! its machines.

use std::fs;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisSet, Reply, until};
use nix::sys::signal::Signal;

use crate::support::harness::Sandbox;
use crate::support::processes::{guardian_of, signal, until_gone};
use crate::support::program::{Running, sh};

const SECOND: Duration = Duration::from_secs(1);

/// Starts a run with `options` whose command has ended with 3, and whose lock is kept.
fn staying(sandbox: &Sandbox, options: &str) -> Running {
    let run = sandbox.start(&sh(&format!("run {options} x"), "exit 3"));
    run.says("--min-hold keeps the lock for");
    run
}

#[test]
fn min_hold_keeps_file_locks_by_staying() {
    let sandbox = Sandbox::new();
    let began = SystemClock.now();
    let ended = sandbox.run(&sh("run --min-hold 1500ms x", "echo ran; exit 3"));
    ended.fails(3, &["--min-hold keeps the lock for"]);
    assert_eq!(ended.stdout, "ran\n");
    assert!(SystemClock.now().since(began) >= Duration::from_millis(1_500));
    assert!(sandbox.is_free("x"));
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

fn assert_loss_keeps_the_code(sandbox: &Sandbox, lose: impl Fn()) {
    let run = staying(sandbox, "--min-hold 1h");
    lose();
    run.signal(Signal::SIGTERM);
    run.wait().fails(3, &["warning", "not kept for --min-hold"]);
}

#[test]
fn loss_during_the_stay_keeps_the_code() {
    let sandbox = Sandbox::new();
    let remove = || fs::remove_dir_all(sandbox.path("locks")).unwrap();
    assert_loss_keeps_the_code(&sandbox, remove);
}

#[test]
fn redis_loss_during_the_stay_keeps_the_code() {
    let (sandbox, server) = Sandbox::on_redis();
    assert_loss_keeps_the_code(&sandbox, || drop(server.command(&["DEL", "x"])));
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

/// A command that writes its time since boot to `file`.
fn job(file: &str) -> String {
    format!("cut -d' ' -f1 /proc/uptime > {file}; exit 3")
}

/// When that command ran. The time since boot is exact to a hundredth of a second.
fn ran_at(sandbox: &Sandbox, file: &str) -> BootInstant {
    let uptime: f64 = sandbox.line_in(file).parse().unwrap();
    BootInstant::from_nanos(0) + Duration::from_secs_f64(uptime)
}

/// Runs a short job and another one after it, and asserts that the lock was kept for `least` between them. Returns
/// when the first program had ended, and when the first and the second job ran.
fn assert_kept_for(least: Duration, sandbox: &Sandbox, options: &str) -> [BootInstant; 3] {
    let before = SystemClock.now();
    let first = sandbox.run(&sh(&format!("run {options} x"), &job("first")));
    assert_eq!((first.code(), &*first.stderr), (3, ""));
    let gone = SystemClock.now();
    let next = sandbox.run(&sh("run -w 30s x", &job("next")));
    assert_eq!(next.code(), 3, "{next:?}");
    let next = ran_at(sandbox, "next") + Duration::from_millis(10);
    assert!(next.since(before) >= least, "{:?}", next.since(before));
    [gone, ran_at(sandbox, "first"), next]
}

#[test]
fn redis_lock_outlives_a_short_job() {
    let one = Sandbox::on_redis();
    let five = Sandbox::on_quorum(5);
    for sandbox in [&one.0, &five.0] {
        let [gone, first, next] = assert_kept_for(9 * SECOND, sandbox, "--ttl 6s --min-hold 9s");
        // On a very busy machine the times prove nothing.
        if gone.since(first) < 5 * SECOND {
            assert!(next > gone, "the first run ended long before");
        }
    }
}

#[test]
fn short_min_hold_ends_long_before_redis_ttl() {
    let (sandbox, _server) = Sandbox::on_redis();
    assert_kept_for(3 * SECOND, &sandbox, "--ttl 60s --min-hold 3s");
}

#[test]
fn signal_leaves_the_redis_lease_of_a_stay() {
    let servers = RedisSet::start(3);
    let sandbox = Sandbox::on(&servers.urls());
    sandbox.run("init --max-ttl 20s").succeeds();
    let staying = staying(&sandbox, "--max-ttl 20s --ttl 10s --min-hold 1h");
    staying.signal(Signal::SIGTERM);
    assert_eq!(staying.wait().code(), 3);
    let next = sandbox.run("run --max-ttl 20s --ttl 10s -n x true");
    next.fails(75, &["held by"]);
}

#[test]
fn unnoticed_redis_loss_during_the_command_is_76() {
    let (sandbox, server) = Sandbox::on_redis();
    let running = sandbox.hold("--min-hold 50s x", "up");
    server.command(&["DEL", "x"]);
    sandbox.let_go();
    running.wait().fails(76, &["lost lock \"x\"", "vanished"]);
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
    ended.fails(3, &["warning", "not kept for --min-hold", "lost: "]);
    server.thaw();
}

#[test]
fn three_machines_run_one_redis_job_once() {
    let (sandbox, _servers) = Sandbox::on_quorum(3);
    let page = include_str!("../../../../../docs/scheduled-jobs.md");
    let (_, crontab) = page.split_once(" leasehold run ").unwrap();
    let (options, _) = crontab.split_once(" -- ").unwrap();
    let args = sh(&format!("run {options}"), "echo ran >> runs");
    // Three machines whose clocks agree, so that each may get one of the three servers, and one that is late.
    let machines = [(); 3].map(|()| sandbox.start(&args));
    for machine in machines {
        machine.wait().succeeds();
    }
    sandbox.run(&args).succeeds();
    assert_eq!(sandbox.lines_in("runs"), ["ran"]);
}
