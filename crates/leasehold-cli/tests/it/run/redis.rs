use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, RedisSet, until};
use nix::sys::signal::Signal;

use crate::support::harness::{Ended, Running, Sandbox};
use crate::support::processes::{state, until_gone, until_stopped};

/// A command with a child; neither ends on SIGTERM, and the child notes the time since boot again
/// and again. The command itself starts nothing more, because a shell that is starting a process stops
/// only when that process runs (vfork).
const STUBBORN: &str = r#"
trap "" TERM
sh -c 'echo $$ > child
    while :; do cut -d" " -f1 /proc/uptime > next && mv next beat; sleep 0.05; done' &
echo $$ > command
wait
"#;

pub(crate) fn start(sandbox: &Sandbox, urls: &[String], args: &[&str]) -> Running {
    let mut command = sandbox.without_store();
    command.env("LEASEHOLD_STORE", urls.join(","));
    command.args(args);
    sandbox.spawn(command)
}

pub(crate) fn run(sandbox: &Sandbox, urls: &[String], args: &[&str]) -> Ended {
    start(sandbox, urls, args).wait()
}

/// Returns the servers of an initialized quorum. Without initialization, new servers have no vote yet.
pub(crate) fn initialized_quorum(sandbox: &Sandbox, count: usize) -> RedisSet {
    let servers = RedisSet::start(count);
    let ended = run(sandbox, &servers.urls(), &["init"]);
    assert_eq!(ended.code(), 0, "{ended:?}");
    servers
}

fn stubborn(sandbox: &Sandbox, urls: &[String], ttl: &str) -> (Running, [i32; 2]) {
    let run = start(
        sandbox,
        urls,
        &["run", "--ttl", ttl, "x", "--", "sh", "-c", STUBBORN],
    );
    let processes = ["command", "child"].map(|name| sandbox.pid_in(name));
    (run, processes)
}

/// The latest deadline that a lease of fifteen seconds can have whose renewals end now.
fn latest_deadline() -> BootInstant {
    SystemClock.now() + Duration::from_millis(15_000 - 1_500)
}

/// Waits until the processes are gone, and asserts that none of them did anything after `deadline`.
/// The moment when they are *seen* to be gone does not matter, since the machine may be busy.
#[track_caller]
fn assert_gone_before(sandbox: &Sandbox, deadline: BootInstant, processes: [i32; 2]) {
    processes.into_iter().for_each(until_gone);
    let beat: f64 = sandbox.line_in("beat").parse().unwrap();
    let beat = Duration::from_secs_f64(beat);
    let deadline = deadline.since(BootInstant::from_nanos(0));
    assert!(beat < deadline, "{beat:?} is after {deadline:?}");
}

#[test]
fn frozen_server_ends_the_group_before_the_deadline() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let (run, processes) = stubborn(&sandbox, &[server.url()], "15s");
    server.freeze();
    assert_gone_before(&sandbox, latest_deadline(), processes);
    let ended = run.wait();
    ended.fails(76, &[r#"lost lock "x": could not renew it in time"#]);
    server.thaw();
}

#[test]
fn a_dead_server_is_a_lost_lease_too() {
    let sandbox = Sandbox::new();
    let mut server = RedisServer::start();
    let (run, processes) = stubborn(&sandbox, &[server.url()], "3s");
    server.kill();
    processes.into_iter().for_each(until_gone);
    run.wait().fails(76, &[r#"lost lock "x""#]);
}

#[test]
fn deleted_lease_is_lost_at_next_renewal() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let (run, processes) = stubborn(&sandbox, &[server.url()], "3s");
    server.command(&["DEL", "x"]);
    processes.into_iter().for_each(until_gone);
    let ended = run.wait();
    ended.fails(76, &[r#"lost lock "x": the lease vanished"#]);
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
}

#[test]
fn lease_is_renewed_while_the_command_runs() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let script = "echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done; exit 3";
    let began = SystemClock.now();
    let args = ["run", "--ttl", "4s", "x", "--", "sh", "-c", script];
    let holder = start(&sandbox, &[server.url()], &args);
    sandbox.pid_in("pid");
    until("twice its TTL", || {
        SystemClock.now().since(began) > Duration::from_secs(8)
    });
    let busy = run(&sandbox, &[server.url()], &["run", "-n", "x", "true"]);
    busy.fails(75, &["held by"]);
    std::fs::write(sandbox.path("go"), "").unwrap();
    let ended = holder.wait();
    assert_eq!((ended.code(), &*ended.stderr), (3, ""));
    assert_eq!(
        run(&sandbox, &[server.url()], &["run", "-n", "x", "true"]).code(),
        0
    );
}

#[test]
fn stopped_command_ends_before_its_lease() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let (run, processes) = stubborn(&sandbox, &[server.url()], "15s");
    run.signal(Signal::SIGTSTP);
    until_stopped(run.pid());
    assert_gone_before(&sandbox, latest_deadline(), processes);
    run.wait().fails(76, &[r#"lost lock "x""#]);
}

#[test]
fn lock_of_killed_wrapper_is_free_within_ttl() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let (holder, processes) = stubborn(&sandbox, &[server.url()], "15s");
    holder.signal(Signal::SIGKILL);
    assert_gone_before(&sandbox, latest_deadline(), processes);
    let next = run(
        &sandbox,
        &[server.url()],
        &["run", "-w", "25s", "x", "true"],
    );
    assert_eq!(next.code(), 0, "{next:?}");
}

#[test]
fn two_frozen_of_five_only_add_warnings() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 5);
    servers[1].freeze();
    servers[3].freeze();
    let script = "echo $LEASEHOLD_MEMBERS; echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done";
    let args = ["run", "--ttl", "6s", "x", "--", "sh", "-c", script];
    let holder = start(&sandbox, &servers.urls(), &args);
    sandbox.pid_in("pid");
    for frozen in [1, 3] {
        holder.says(&format!("127.0.0.1:{}", servers[frozen].port()));
    }
    let busy = run(&sandbox, &servers.urls(), &["run", "-n", "x", "true"]);
    assert_eq!(busy.code(), 75, "{busy:?}");
    std::fs::write(sandbox.path("go"), "").unwrap();
    let ended = holder.wait();
    assert_eq!(ended.code(), 0, "{ended:?}");
    let members: Vec<String> = servers
        .iter()
        .map(|s| format!("127.0.0.1:{}", s.port()))
        .collect();
    assert_eq!(ended.stdout.trim_end(), members.join(","));
}

#[test]
fn a_majority_that_freezes_is_a_lost_lease() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 5);
    let (run, processes) = stubborn(&sandbox, &servers.urls(), "15s");
    for index in [0, 2, 4] {
        servers[index].freeze();
    }
    assert_gone_before(&sandbox, latest_deadline(), processes);
    run.wait().fails(76, &[r#"lost lock "x""#]);
}

#[test]
fn three_dead_of_five_are_69_by_name() {
    let sandbox = Sandbox::new();
    let mut servers = initialized_quorum(&sandbox, 5);
    for index in [0, 2, 4] {
        servers[index].kill();
    }
    let dead: Vec<String> = [0, 2, 4]
        .iter()
        .map(|index| format!("127.0.0.1:{}", servers[*index].port()))
        .collect();
    let dead: Vec<&str> = dead.iter().map(String::as_str).collect();
    let began = SystemClock.now();
    let ended = run(
        &sandbox,
        &servers.urls(),
        &["run", "-w", "2s", "x", "touch", "ran"],
    );
    let took = SystemClock.now().since(began);
    ended.fails(69, &dead);
    assert!(took < Duration::from_secs(10), "{took:?}");
    let ended = run(
        &sandbox,
        &servers.urls(),
        &["run", "-n", "y", "touch", "ran"],
    );
    ended.fails(69, &dead);
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn log_lines_are_objects_for_programs() {
    let sandbox = Sandbox::new();
    let mut servers = initialized_quorum(&sandbox, 3);
    servers[2].kill();
    let ended = run(
        &sandbox,
        &servers.urls(),
        &["run", "--json", "x", "sleep", "0.5"],
    );
    assert_eq!(ended.code(), 0, "{ended:?}");
    let dead = format!("127.0.0.1:{}", servers[2].port());
    let named = ended.stderr.lines().any(|line| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        value["event"] == "warning" && value["message"].as_str().unwrap().contains(&dead)
    });
    assert!(named, "{ended:?}");
}

#[test]
fn a_wrong_password_is_77_and_never_shown() {
    let sandbox = Sandbox::new();
    let server = RedisServer::builder().password("right").start();
    let wrong = format!("redis://:secret@127.0.0.1:{}", server.port());
    let ended = run(
        &sandbox,
        std::slice::from_ref(&wrong),
        &["run", "x", "touch", "ran"],
    );
    ended.fails(77, &[&format!("127.0.0.1:{}", server.port())]);
    assert!(!ended.stderr.contains("secret"), "{ended:?}");
    run(&sandbox, &[wrong], &["status", "x"]).fails(77, &[]);
    let script = "echo $LEASEHOLD_MEMBERS";
    let ended = run(
        &sandbox,
        &[server.url()],
        &["run", "x", "--", "sh", "-c", script],
    );
    assert_eq!(ended.stdout, format!("127.0.0.1:{}\n", server.port()));
}

#[test]
fn key_of_another_type_is_65() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    server.command(&["HSET", "x", "field", "1"]);
    let ended = run(&sandbox, &[server.url()], &["run", "x", "touch", "ran"]);
    ended.fails(65, &["x"]);
    assert_eq!(ended.stderr.lines().count(), 1, "told once: {ended:?}");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn foreign_lock_without_end_is_named() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let urls = [server.url()];
    server.command(&["SET", "job", "1"]);
    let waiter = start(&sandbox, &urls, &["run", "-w", "40s", "job", "true"]);
    waiter.says("(the key holds a number, as Redisson's semaphores");
    waiter.says("which never expires");
    let status = run(&sandbox, &urls, &["status", "job"]).stdout;
    assert!(
        status.contains("a number") && status.contains("never expires"),
        "{status}"
    );
    let doctor = run(&sandbox, &urls, &["doctor"]).stdout;
    assert!(doctor.contains("\"job\" never expires"), "{doctor}");
    server.command(&["DEL", "job"]);
    assert_eq!(waiter.wait().code(), 0);
}

#[test]
fn a_token_of_another_library_is_a_holder() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    server.command(&["SET", "x", "token-of-redis-py", "NX", "PX", "60000"]);
    let busy = run(&sandbox, &[server.url()], &["run", "-n", "x", "true"]);
    busy.fails(75, &["held by a client of another library"]);
    let status = run(&sandbox, &[server.url()], &["status", "x"]);
    assert!(status.stdout.contains("unless renewed"), "{status:?}");
}

#[test]
fn status_names_holder_host_and_expiry() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 3);
    let (holder, processes) = stubborn(&sandbox, &servers.urls(), "15s");
    let mut status = String::new();
    let known = format!("held by leasehold (pid {} on ", holder.pid());
    // A client may register itself a moment after it takes its lock.
    until("the status names the holder", || {
        status = run(&sandbox, &servers.urls(), &["status", "x"]).stdout;
        status.contains(&known)
    });
    assert!(status.contains("unless renewed"), "{status}");
    holder.signal(Signal::SIGKILL);
    processes.into_iter().for_each(until_gone);
    assert!(processes.map(state).iter().all(Option::is_none));
}
