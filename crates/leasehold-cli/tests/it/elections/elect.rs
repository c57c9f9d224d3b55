//! `elect` on each store, and on files: one leader follows another, and observers see each leader.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;

use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::harness::Sandbox;
use crate::support::processes::until_gone;
use crate::support::program::{Running, assert_fields, sh};
use crate::support::stores::{TestStore, on_stores};

/// A command that notes its fence and its process, and stays until its gate is opened.
fn stay(gate: &str) -> String {
    format!("echo $LEASEHOLD_FENCE >> fences; echo $$ > {gate}.pid; read go < {gate}; exit 3")
}

fn start(sandbox: &Sandbox, options: &str, script: &str) -> Running {
    sandbox.start(&sh(&format!("elect -v {options} x"), script))
}

pub(crate) fn fences(sandbox: &Sandbox) -> Vec<u64> {
    let lines = sandbox.lines_in("fences");
    lines.iter().map(|line| line.parse().unwrap()).collect()
}

/// Waits until the command was started `count` times, each time with a greater fence.
#[track_caller]
pub(crate) fn until_led(sandbox: &Sandbox, count: usize) {
    until(&format!("{count} leaderships"), || {
        fences(sandbox).len() >= count
    });
    let fences = fences(sandbox);
    assert_eq!(fences.len(), count);
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
}

/// The changes that an observer printed so far, a JSON object each.
pub(crate) fn changes(sandbox: &Sandbox, file: &str) -> Vec<Value> {
    let lines = sandbox.lines_in(file);
    let parse = |line: &String| serde_json::from_str(line).unwrap();
    let changes: Vec<Value> = lines.iter().map(parse).collect();
    assert!(changes.iter().all(|change| change["version"] == 1));
    changes
}

/// Notes its fence, its process, and whether the command of another leader is still there.
const LEAD: &str = r#"
for other in *.pid; do
    if [ -s $other ] && kill -0 $(cat $other) 2> /dev/null; then echo $other >> overlaps; fi
done
echo $$ > $0.pid
echo $LEASEHOLD_FENCE >> fences
trap "" TERM
while :; do sleep 0.02; done"#;

pub(crate) fn lead(sandbox: &Sandbox, who: &str, options: &str) -> Running {
    let ttl = if options.contains("--ttl") {
        ""
    } else {
        "--ttl 3s"
    };
    let options = format!("{ttl} --grace 200ms {options} --value {who}");
    sandbox.start(&sh(
        &format!("elect -v {options} x"),
        &LEAD.replace("$0", who),
    ))
}

/// Waits until an observer sees that `who` leads.
#[track_caller]
pub(crate) fn until_leads(sandbox: &Sandbox, who: &str) {
    until(&format!("an observer sees {who} lead"), || {
        let change = sandbox.run("elect --observe --once --json x").json_of_any();
        change["leader"]["value"] == who
    });
}

on_stores!(killed_leader_is_followed: redis postgres etcd zookeeper);

/// On Redis, the guardian releases the lock at once: the lease would last for ten minutes.
fn killed_leader_is_followed(sandbox: &TestStore) {
    let ttl = match sandbox.store().starts_with("redis") {
        true => "--ttl 10m",
        false => "--ttl 3s",
    };
    let first = lead(sandbox, "a", ttl);
    until_led(sandbox, 1);
    until_leads(sandbox, "a");
    let second = lead(sandbox, "b", ttl);
    second.says("waiting for ");
    first.signal(Signal::SIGKILL);
    until_led(sandbox, 2);
    until_leads(sandbox, "b");
    assert_eq!(sandbox.lines_in("overlaps"), [""; 0]);
}

#[test]
fn next_candidate_leads_after_the_command_ended() {
    let sandbox = Sandbox::new();
    sandbox.gate("a");
    sandbox.gate("b");
    let first = start(&sandbox, "--value node-a", &stay("a"));
    sandbox.pid_in("a.pid");
    let second = start(&sandbox, "--value node-b", &stay("b"));
    second.says("for lock \"x\", held by leasehold");
    until_led(&sandbox, 1);
    let leader = sandbox.run("elect --observe --once x").succeeds();
    let known = format!("x: led by leasehold (pid {} on ", first.pid());
    assert!(leader.stdout.starts_with(&known), "{leader:?}");
    let fence = format!(", fence {}, value \"node-a\"\n", fences(&sandbox)[0]);
    assert!(leader.stdout.ends_with(&fence), "{leader:?}");
    sandbox.open_gate("a");
    let ended = first.wait();
    assert_eq!(ended.code(), 3);
    sandbox.pid_in("b.pid");
    until_led(&sandbox, 2);
    sandbox.open_gate("b");
    assert_eq!(second.wait().code(), 3);
    let nobody = sandbox.run("elect --observe --once x");
    assert_eq!((nobody.code(), &*nobody.stdout), (75, "x: no leader\n"));
    assert!(sandbox.is_free("x"));
}

#[test]
fn observers_print_each_change_until_a_signal() {
    let sandbox = Sandbox::new();
    sandbox.gate("a");
    let observer = sandbox.start("elect --observe --json --every 10ms x");
    let seen = |count| {
        until(&format!("{count} changes"), || {
            sandbox.lines_in("stdout-0").len() >= count
        });
        changes(&sandbox, "stdout-0")[count - 1].clone()
    };
    assert_eq!(seen(1)["event"], "nobody");
    let leader = start(&sandbox, "--value ü\"1\"", &stay("a"));
    until_led(&sandbox, 1);
    let change = seen(2);
    assert_fields(&change, json!({"event": "leads", "name": "x"}));
    let (told, fence) = (&change["leader"], fences(&sandbox)[0]);
    let known = json!({"value": "ü\"1\"", "fence": fence, "pid": leader.pid()});
    assert_fields(told, known);
    assert!(told["owner"].is_string(), "{told}");
    assert!(told["since"].is_string(), "{told}");
    sandbox.open_gate("a");
    assert_eq!(leader.wait().code(), 3);
    assert_eq!(seen(3)["event"], "nobody");
    observer.signal(Signal::SIGINT);
    let ended = observer.wait();
    let end: Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_fields(&end, json!({"event": "end", "exit_code": 130}));
    assert_eq!(ended.code(), 130);
    assert_eq!(ended.stdout.lines().count(), 3, "{ended:?}");
}

on_stores!(lost_leadership_is_campaigned_for_unless_once: file redis);

fn lost_leadership_is_campaigned_for_unless_once(sandbox: &TestStore) {
    let leader = lead(sandbox, "a", "");
    until_led(sandbox, 1);
    let command = sandbox.pid_in("a.pid");
    sandbox.delete("x");
    until_gone(command);
    leader.says("lost lock \"x\": ");
    leader.says("campaigning for \"x\" again in ");
    until_led(sandbox, 2);
    let once = lead(sandbox, "b", "--once --json");
    once.says(r#""event":"waiting""#);
    leader.signal(Signal::SIGKILL);
    until_led(sandbox, 3);
    sandbox.delete("x");
    let ended = once.wait();
    assert_eq!(ended.code(), 76, "{ended:?}");
    let events = ended.events();
    let names = events.iter().map(|event| event["event"].as_str().unwrap());
    let names: Vec<&str> = names.filter(|name| *name != "waiting").collect();
    assert_eq!(names, ["acquired", "leads", "lost", "end"], "{ended:?}");
    let leads = events.iter().find(|event| event["event"] == "leads");
    let fence = fences(sandbox)[2];
    assert_fields(
        leads.unwrap(),
        json!({"version": 1, "name": "x", "fence": fence}),
    );
    assert_eq!(sandbox.lines_in("overlaps"), [""; 0]);
}

#[test]
fn candidate_asked_to_end_does_not_campaign() {
    let sandbox = Sandbox::new();
    let script = "trap 'echo got >> got' TERM; echo $LEASEHOLD_FENCE >> fences
        while :; do sleep 0.02; done";
    let leader = start(&sandbox, "--ttl 600ms --grace 100ms", script);
    until_led(&sandbox, 1);
    leader.signal(Signal::SIGTERM);
    sandbox.line_in("got");
    remove_lock_file(&sandbox);
    leader.wait().fails(76, &["lost lock"]);
    until_led(&sandbox, 1);

    // In the pause before it campaigns again, no command receives the signal.
    let script = "echo $LEASEHOLD_FENCE >> fences; exec sleep 1000";
    let leader = start(&sandbox, "--ttl 600ms", script);
    until_led(&sandbox, 2);
    remove_lock_file(&sandbox);
    leader.says("campaigning for \"x\" again");
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.wait().code(), 143);
}

#[test]
fn loss_after_a_signal_ends_the_candidate() {
    let sandbox = Sandbox::new();
    let script = "echo $LEASEHOLD_FENCE >> fences; exec sleep 1000";
    // Long before the next renewal would show that the lease is gone.
    let leader = start(&sandbox, "--ttl 60s", script);
    until_led(&sandbox, 1);
    remove_lock_file(&sandbox);
    leader.signal(Signal::SIGTERM);
    leader.wait().fails(76, &["lost lock \"x\": "]);
    until_led(&sandbox, 1);
}

#[test]
fn observe_once_can_be_ended_without_answer() {
    let sandbox = Sandbox::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", silent.local_addr().unwrap());
    let observer = sandbox.start_at(&[url], "elect --observe --once x");
    // It has connected, and asks.
    let asking = silent.accept().unwrap();
    observer.signal(Signal::SIGTERM);
    let signal = observer.wait().status.signal();
    assert_eq!(signal, Some(Signal::SIGTERM as i32));
    drop(asking);
}

#[test]
fn an_observer_that_nobody_can_hear_ends() {
    let sandbox = Sandbox::new();
    let observer = sandbox.shell("exec \"$LEASEHOLD\" elect --observe x > /dev/full");
    observer.wait().fails(74, &["stdout"]);
}

#[test]
fn waiting_candidate_can_be_ended_without_trace() {
    let sandbox = Sandbox::new();
    sandbox.gate("a");
    let leader = start(&sandbox, "", &stay("a"));
    until_led(&sandbox, 1);
    let candidate = start(&sandbox, "", "touch ran");
    candidate.says("waiting for ");
    candidate.signal(Signal::SIGTERM);
    let signal = candidate.wait().status.signal();
    assert_eq!(signal, Some(Signal::SIGTERM as i32));
    sandbox.open_gate("a");
    assert_eq!(leader.wait().code(), 3);
    assert!(sandbox.is_free("x") && !sandbox.path("ran").exists());
}

#[test]
fn signals_and_exit_codes_match_run() {
    let sandbox = Sandbox::new();
    let script = "trap 'exit 5' USR1; echo $LEASEHOLD_NAME > name; while :; do sleep 0.02; done";
    let leader = start(&sandbox, "", script);
    assert_eq!(sandbox.line_in("name"), "x");
    leader.signal(Signal::SIGUSR1);
    assert_eq!(leader.wait().code(), 5);
    let ended = sandbox.run(&sh("elect x", "exit 76"));
    assert_eq!((ended.code(), &*ended.stderr), (76, ""), "no loss");
    let missing = sandbox.run("elect x no-such-command");
    missing.fails(127, &["no-such-command"]);
    assert!(sandbox.is_free("x"));
}

/// Takes the lock from its holder, like a cleanup script that does not know about locks.
#[track_caller]
fn remove_lock_file(sandbox: &Sandbox) {
    fs::remove_file(sandbox.path("locks/x.lock")).unwrap();
}
