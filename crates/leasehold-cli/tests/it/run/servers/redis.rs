use std::fs;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, RedisSet};
use nix::sys::signal::Signal;

use crate::support::harness::{Sandbox, id};
use crate::support::processes::{guardian_of, outlast, signal, until_gone, until_stopped};
use crate::support::program::{Running, sh};
use crate::support::stores::{TestStore, on_stores};

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

fn stubborn(sandbox: &Sandbox, ttl: &str) -> (Running, [i32; 2]) {
    let run = sandbox.start(&sh(&format!("run --ttl {ttl} x"), STUBBORN));
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

on_stores!(frozen_majority_ends_the_group_before_the_deadline: redis redis_quorum);

fn frozen_majority_ends_the_group_before_the_deadline(sandbox: &TestStore) {
    let (run, processes) = stubborn(sandbox, "15s");
    let majority = || sandbox.redis().iter().step_by(2);
    majority().for_each(RedisServer::freeze);
    assert_gone_before(sandbox, latest_deadline(), processes);
    let reason = r#"lost lock "x": could not renew it in time"#;
    run.wait().fails(76, &[reason]);
    majority().for_each(RedisServer::thaw);
}

#[test]
fn server_that_evicts_is_refused_unless_accepted() {
    let server = RedisServer::builder()
        .directive("maxmemory", "64mb")
        .directive("maxmemory-policy", "volatile-ttl")
        .start();
    let strict = Sandbox::on(&[server.url()]);
    let remedies = ["maxmemory-policy noeviction", "?evicting=accept"];
    strict.run("run -n x true").fails(78, &remedies);
    strict.run("run x true").fails(78, &remedies);
    let url = format!("{}?evicting=accept", server.url());
    Sandbox::on(std::slice::from_ref(&url))
        .run("run -n x true")
        .succeeds();
    let quorum = Sandbox::on(&[url, "redis://10.0.0.1".into(), "redis://10.0.0.2".into()]);
    quorum
        .run("run -n x true")
        .fails(64, &["evicting=accept is for a single server"]);
}

#[test]
fn lease_is_renewed_while_the_command_runs() {
    let (sandbox, _server) = Sandbox::on_redis();
    let holder = sandbox.hold("--ttl 4s x", "pid");
    outlast(Duration::from_secs(8));
    sandbox.run("run -n x true").fails(75, &["held by"]);
    sandbox.let_go();
    assert_eq!(holder.wait().succeeds().stderr, "");
    sandbox.run("run -n x true").succeeds();
}

#[test]
fn stopped_command_ends_before_its_lease() {
    let (sandbox, _server) = Sandbox::on_redis();
    let (run, processes) = stubborn(&sandbox, "15s");
    run.signal(Signal::SIGTSTP);
    until_stopped(run.pid());
    assert_gone_before(&sandbox, latest_deadline(), processes);
    run.wait().fails(76, &[r#"lost lock "x""#]);
}

#[test]
fn lock_of_killed_wrapper_is_free_within_ttl() {
    let (sandbox, _server) = Sandbox::on_redis();
    let (holder, processes) = stubborn(&sandbox, "15s");
    holder.signal(Signal::SIGKILL);
    assert_gone_before(&sandbox, latest_deadline(), processes);
    sandbox.run("run -w 25s x true").succeeds();
}

/// Its lease would last for ten minutes.
#[test]
fn guardian_releases_for_a_killed_wrapper() {
    let (sandbox, _server) = Sandbox::on_redis();
    let (holder, processes) = stubborn(&sandbox, "10m --grace 300ms");
    let guardian = guardian_of(processes[0]);
    for visible in ["environ", "cmdline"] {
        let text = fs::read(format!("/proc/{guardian}/{visible}")).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(!text.contains("lh1_"), "others see a handle: {text}");
    }
    holder.signal(Signal::SIGKILL);
    let next = sandbox.run(&sh("run -w 60s x", STILL_THERE)).succeeds();
    assert_eq!(next.stdout, "");
}

/// Names the processes of the last holder that are still there.
const STILL_THERE: &str = "
for name in command child; do
    if kill -0 $(cat $name) 2> /dev/null; then echo $name; fi
done";

#[test]
fn lock_of_a_killed_guardian_stays_held() {
    let (sandbox, _server) = Sandbox::on_redis();
    let (holder, processes) = stubborn(&sandbox, "10m");
    let guardian = guardian_of(processes[0]);
    signal(guardian, Signal::SIGSTOP);
    until_stopped(guardian);
    holder.signal(Signal::SIGKILL);
    signal(guardian, Signal::SIGKILL);
    until_gone(guardian);
    sandbox.run("run -n x true").fails(75, &[]);
    signal(processes[1], Signal::SIGKILL);
}

#[test]
fn lock_delay_outlasts_a_killed_wrapper() {
    let (sandbox, _server) = Sandbox::on_redis();
    let (holder, processes) = stubborn(&sandbox, "10m --grace 300ms --lock-delay 1s");
    let guardian = guardian_of(processes[0]);
    holder.signal(Signal::SIGKILL);
    until_gone(guardian);
    sandbox.run("run -n x true").fails(75, &[]);
}

#[test]
fn lock_of_a_handle_outlasts_a_killed_wrapper() {
    let (sandbox, _server) = Sandbox::on_redis();
    let acquire = "acquire --ttl 10m --handle-file handle x";
    sandbox.run(acquire).succeeds();
    let line = "run --grace 300ms --handle-file handle";
    let holder = sandbox.start(&sh(line, STUBBORN));
    let guardian = guardian_of(sandbox.pid_in("command"));
    holder.signal(Signal::SIGKILL);
    until_gone(guardian);
    sandbox.run("run -n x true").fails(75, &[]);
    sandbox.run("release --handle-file handle").succeeds();
}

#[test]
fn two_frozen_of_five_only_add_warnings() {
    let (sandbox, servers) = Sandbox::on_quorum(5);
    servers[1].freeze();
    servers[3].freeze();
    let script = "echo $LEASEHOLD_MEMBERS; echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done";
    let holder = sandbox.start(&sh("run --ttl 6s x", script));
    sandbox.pid_in("pid");
    for frozen in [1, 3] {
        holder.says(&id(&servers[frozen]));
    }
    sandbox.run("run -n x true").fails(75, &[]);
    sandbox.let_go();
    let members: Vec<String> = servers.iter().map(id).collect();
    let ended = holder.wait().succeeds();
    assert_eq!(ended.stdout.trim_end(), members.join(","));
}

#[test]
fn three_dead_of_five_are_69_by_name() {
    let (sandbox, mut servers) = Sandbox::on_quorum(5);
    let dead = [0, 2, 4].map(|index| {
        servers[index].kill();
        id(&servers[index])
    });
    let dead = dead.each_ref().map(String::as_str);
    let began = SystemClock.now();
    sandbox.run("run -w 2s x touch ran").fails(69, &dead);
    let took = SystemClock.now().since(began);
    assert!(took < Duration::from_secs(10), "{took:?}");
    sandbox.run("run -n y touch ran").fails(69, &dead);
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn log_lines_are_objects_for_programs() {
    let (sandbox, mut servers) = Sandbox::on_quorum(3);
    servers[2].kill();
    let ended = sandbox.run("run --json x sleep 0.5").succeeds();
    let dead = id(&servers[2]);
    let mut events = ended.events().into_iter();
    let named = events.any(|event| {
        event["event"] == "warning" && event["message"].as_str().unwrap().contains(&dead)
    });
    assert!(named, "{ended:?}");
}

#[test]
fn a_wrong_password_is_77_and_never_shown() {
    let server = RedisServer::builder().password("right").start();
    let sandbox = Sandbox::on(&[format!("redis://:secret@{}", id(&server))]);
    for args in [
        "run x touch ran",
        "status x",
        "elect x touch ran",
        "elect --observe x",
        "elect --observe --once x",
    ] {
        let ended = sandbox.run(args);
        ended.fails(77, &[&id(&server)]);
        assert!(!ended.stderr.contains("secret"), "{ended:?}");
    }
    let members = sh("run x", "echo $LEASEHOLD_MEMBERS");
    let ended = sandbox.run_at(&[server.url()], &members);
    assert_eq!(ended.stdout, format!("{}\n", id(&server)));
}

#[test]
fn key_of_another_type_is_65() {
    let (sandbox, server) = Sandbox::on_redis();
    server.command(&["HSET", "x", "field", "1"]);
    let ended = sandbox.run("run x touch ran");
    ended.fails(65, &["x"]);
    assert_eq!(ended.stderr.lines().count(), 1, "told once: {ended:?}");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn foreign_lock_without_end_is_named() {
    let (sandbox, server) = Sandbox::on_redis();
    server.command(&["SET", "job", "1"]);
    let waiter = sandbox.start("run -v -w 40s job true");
    waiter.says("(the key holds a number, as Redisson's semaphores");
    waiter.says("which never expires");
    let status = sandbox.run("status job").stdout;
    assert!(
        status.contains("a number") && status.contains("never expires"),
        "{status}"
    );
    let doctor = sandbox.run("doctor").stdout;
    assert!(doctor.contains("\"job\" never expires"), "{doctor}");
    server.command(&["DEL", "job"]);
    waiter.wait().succeeds();
}

#[test]
fn same_reason_of_many_servers_is_told_once() {
    let servers = RedisSet::start_each(5, &RedisServer::builder().durable());
    let sandbox = Sandbox::on(&servers.urls());
    let refused = sandbox.run("run -n x touch ran");
    refused.fails(
        69,
        &["it restarted, lost data, or is new", "leasehold init"],
    );
    assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    let waiting = sandbox.start("run -v -w 30s x touch ran");
    waiting.says("waiting for ");
    let warnings = waiting.stderr().matches("warning: ").count();
    // Clients ask the servers at the same time, so the rest differs by a second at most.
    assert!((1..=2).contains(&warnings), "{}", waiting.stderr());
    waiting.signal(Signal::SIGTERM);
    assert_eq!(waiting.wait().code(), 143);
    sandbox.run("init").succeeds();
    let elsewhere: Vec<String> = servers
        .urls()
        .iter()
        .map(|url| url.replace("127.0.0.1", "localhost"))
        .collect();
    let refused = sandbox.run_at(&elsewhere, "run -n x touch ran");
    refused.fails(78, &["name them as the quorum does", "?id="]);
    let members = sandbox.run_at(&elsewhere, "members").stdout;
    let once = "once: possible when enough servers have a vote";
    assert!(members.contains(once), "{members}");
    assert!(!sandbox.path("ran").exists());
}
