//! Jobs that are shorter than the difference between the clocks of their machines.

use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply, until};
use nix::sys::signal::Signal;

use crate::run::redis::{initialized_quorum, run, start};
use crate::support::harness::{Running, Sandbox};
use crate::support::processes::until_gone;

const SECOND: Duration = Duration::from_secs(1);

/// When the command that wrote its time since boot to `file` ran.
fn ran_at(sandbox: &Sandbox, file: &str) -> BootInstant {
    let uptime: f64 = sandbox.line_in(file).parse().unwrap();
    BootInstant::from_nanos(0) + Duration::from_secs_f64(uptime)
}

fn job(file: &str) -> String {
    format!("cut -d' ' -f1 /proc/uptime > {file}; exit 3")
}

fn check_that_the_lock_outlives_a_short_job(sandbox: &Sandbox, urls: &[String]) {
    let least = 9 * SECOND;
    let before = SystemClock.now();
    let args = [
        "run",
        "--ttl",
        "6s",
        "--min-hold",
        "9s",
        "x",
        "--",
        "sh",
        "-c",
    ];
    let first = run(sandbox, urls, &[&args[..], &[&job("first")]].concat());
    assert_eq!((first.code(), &*first.stderr), (3, ""));
    let gone = SystemClock.now();
    let job = job("next");
    let next = ["run", "-w", "30s", "x", "--", "sh", "-c", &job];
    assert_eq!(run(sandbox, urls, &next).code(), 3);
    let (first, next) = (ran_at(sandbox, "first"), ran_at(sandbox, "next"));
    // The uptime is in hundredths of a second.
    let next = next + Duration::from_millis(10);
    assert!(next.since(before) >= least, "{:?}", next.since(before));
    // On a very busy machine the times prove nothing.
    if gone.since(first) < 5 * SECOND {
        assert!(next > gone, "the first run ended long before");
    }
}

#[test]
fn lock_outlives_a_short_job() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    check_that_the_lock_outlives_a_short_job(&sandbox, &[server.url()]);
    let servers = initialized_quorum(&sandbox, 5);
    check_that_the_lock_outlives_a_short_job(&sandbox, &servers.urls());
}

#[test]
fn short_min_hold_ends_long_before_the_ttl() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let urls = [server.url()];
    let least = 3 * SECOND;
    let before = SystemClock.now();
    let args = ["run", "--ttl", "60s", "--min-hold", "3s", "x", "true"];
    let first = run(&sandbox, &urls, &args);
    assert_eq!((first.code(), &*first.stderr), (0, ""));
    let job = job("next");
    let next = ["run", "-w", "20s", "x", "--", "sh", "-c", &job];
    let ended = run(&sandbox, &urls, &next);
    assert_eq!(ended.code(), 3, "{ended:?}");
    // The uptime is exact to a hundredth of a second.
    let next = ran_at(&sandbox, "next") + Duration::from_millis(10);
    assert!(next.since(before) >= least, "{:?}", next.since(before));
}

#[test]
fn signal_leaves_the_lease_of_a_stay() {
    let sandbox = Sandbox::new();
    let servers = RedisSet::start(3);
    let urls = servers.urls();
    let initialized = run(&sandbox, &urls, &["init", "--max-ttl", "20s"]);
    assert_eq!(initialized.code(), 0, "{initialized:?}");
    let limits = ["run", "--max-ttl", "20s", "--ttl", "10s"];
    let args = [
        &limits[..],
        &["--min-hold", "1h", "x", "--", "sh", "-c", "exit 3"],
    ]
    .concat();
    let staying = start(&sandbox, &urls, &args);
    staying.says("--min-hold keeps the lock for");
    staying.signal(Signal::SIGTERM);
    assert_eq!(staying.wait().code(), 3);
    let next = [&limits[..], &["-n", "x", "true"]].concat();
    run(&sandbox, &urls, &next).fails(75, &["held by"]);
}

#[test]
fn loss_while_kept_is_reported_without_exit_code() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let urls = [server.url()];
    let args = [
        "run",
        "--ttl",
        "3s",
        "--min-hold",
        "1h",
        "x",
        "--",
        "sh",
        "-c",
        "exit 3",
    ];
    let staying = start(&sandbox, &urls, &args);
    staying.says("--min-hold keeps the lock for");
    server.command(&["DEL", "x"]);
    staying
        .wait()
        .fails(3, &["warning", "not kept for --min-hold", "vanished"]);
}

#[test]
fn unnoticed_loss_during_the_command_is_76() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    sandbox.gate("gate");
    let job = "echo up > up; read -r line < gate";
    let args = ["run", "--min-hold", "50s", "x", "--", "sh", "-c", job];
    let running = start(&sandbox, &[server.url()], &args);
    sandbox.line_in("up");
    server.command(&["DEL", "x"]);
    sandbox.open_gate("gate");
    running.wait().fails(76, &["lost lock \"x\"", "vanished"]);
}

/// A run whose lock is kept for long, however soon its command ends.
fn run_of<'a>(job: &'a str, ttl: &'a str) -> [&'a str; 10] {
    let words = ["run", "--ttl", ttl, "--min-hold", "50s", "x", "--"];
    let [run, option, ttl, min_hold, span, lock, end] = words;
    [run, option, ttl, min_hold, span, lock, end, "sh", "-c", job]
}

/// A run with `--min-hold` whose command has begun, and ends with 3 once `gate` is opened.
fn kept(sandbox: &Sandbox, server: &RedisServer, ttl: &str) -> (Running, i32) {
    sandbox.gate("gate");
    let job = "echo $$ > pid; read -r line < gate; exit 3";
    let running = start(sandbox, &[server.url()], &run_of(job, ttl));
    let command = sandbox.pid_in("pid");
    (running, command)
}

#[test]
fn expired_lock_is_lost_without_a_check() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let (running, command) = kept(&sandbox, &server, "3s");
    running.signal(Signal::SIGSTOP);
    sandbox.open_gate("gate");
    until_gone(command);
    until("the lease ends", || {
        server.command(&["EXISTS", "x"]) == Reply::Integer(0)
    });
    running.signal(Signal::SIGCONT);
    running.wait().fails(76, &["lost lock \"x\""]);
}

#[test]
fn store_outage_after_the_command_costs_nothing() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    // Its deadline passes before it gives the store up.
    let job = format!("kill -STOP {}; exit 3", server.pid());
    let ended = run(&sandbox, &[server.url()], &run_of(&job, "3s"));
    ended.fails(3, &["warning", "not kept for --min-hold", "lost: "]);
    server.thaw();
}

#[test]
fn redis_loss_during_the_stay_keeps_the_code() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let args = ["run", "--min-hold", "1h", "x", "--", "sh", "-c", "exit 3"];
    let staying = start(&sandbox, &[server.url()], &args);
    staying.says("--min-hold keeps the lock for");
    server.command(&["DEL", "x"]);
    staying.signal(Signal::SIGTERM);
    staying
        .wait()
        .fails(3, &["warning", "not kept for --min-hold", "vanished"]);
}

/// The command line of the page about scheduled jobs.
fn crontab() -> Vec<&'static str> {
    let page = include_str!("../../../../../docs/scheduled-jobs.md");
    let line = page.lines().find(|line| line.contains("leasehold run"));
    let words = line.expect("an example").split_whitespace();
    words
        .skip_while(|word| *word != "leasehold")
        .skip(1)
        .collect()
}

#[test]
fn three_machines_run_one_job_once() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 3);
    let urls = servers.urls();
    let line = crontab();
    let end = line.iter().position(|word| *word == "--").unwrap();
    let command = ["sh", "-c", "echo ran >> runs"];
    let args = [&line[..=end], &command].concat();
    // Three machines whose clocks agree, so that each may get one of the three servers, and one that is late.
    let machines = [(); 3].map(|()| start(&sandbox, &urls, &args));
    for machine in machines {
        let ended = machine.wait();
        assert_eq!(ended.code(), 0, "{ended:?}");
    }
    let late = run(&sandbox, &urls, &args);
    assert_eq!(late.code(), 0, "{late:?}");
    assert_eq!(sandbox.lines_in("runs"), ["ran"]);
}
