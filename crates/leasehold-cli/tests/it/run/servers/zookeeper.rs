//! Locks, results and leaders on ZooKeeper.

use leasehold_testkit::servers::{Zookeeper, until};
use nix::sys::signal::Signal;

use crate::support::harness::Sandbox;
use crate::support::processes::until_gone;
use crate::support::program::sh;

pub(crate) fn on_zookeeper(count: usize) -> (Sandbox, Zookeeper) {
    let servers = Zookeeper::builder().members(count).start();
    let sandbox = Sandbox::on(&[servers.url() + "/locks"]);
    (sandbox, servers)
}

#[test]
fn zookeeper_commands_run_one_by_one() {
    let (sandbox, _servers) = on_zookeeper(3);
    let count =
        r#"read n < count; sleep 0.05; echo $((n + 1)) > count; echo $LEASEHOLD_FENCE >> fences"#;
    std::fs::write(sandbox.path("count"), "0\n").unwrap();
    let running: Vec<_> = (0..6).map(|_| sandbox.start(&sh("run x", count))).collect();
    running.into_iter().for_each(|run| {
        run.wait().succeeds();
    });
    assert_eq!(sandbox.line_in("count"), "6");
    let fences: Vec<u64> = sandbox
        .lines_in("fences")
        .iter()
        .map(|line| line.parse().unwrap())
        .collect();
    assert!(
        fences.is_sorted_by(|a, b| a < b) && fences.len() == 6,
        "{fences:?}"
    );
}

#[test]
fn zookeeper_busy_lock_is_status_75() {
    let (sandbox, _servers) = on_zookeeper(1);
    let holder = sandbox.hold("x", "pid");
    sandbox.run("run -n x true").fails(75, &["x"]);
    sandbox.run("run -n --shared x true").fails(75, &["x"]);
    assert!(!sandbox.is_free("x"));
    sandbox.let_go();
    holder.wait().succeeds();
    sandbox.run("run -n x true").succeeds();
}

#[test]
fn zookeeper_lock_of_a_killed_process_is_freed() {
    let (sandbox, _servers) = on_zookeeper(1);
    let holder = sandbox.hold("--ttl 2s x", "pid");
    let command = sandbox.pid_in("pid");
    holder.signal(Signal::SIGKILL);
    sandbox.run("run -w 20s x true").succeeds();
    until_gone(command);
}

#[test]
fn zookeeper_that_fails_ends_the_command_in_time() {
    let (sandbox, mut servers) = on_zookeeper(1);
    let holder = sandbox.hold("--ttl 3s x", "pid");
    let command = sandbox.pid_in("pid");
    servers.kill(0);
    until_gone(command);
    holder.wait().fails(76, &["lost lock \"x\""]);
    sandbox.run("run -w 1s x true").fails(69, &["127.0.0.1"]);
}

#[test]
fn zookeeper_has_no_handles_and_no_lock_delay() {
    let (sandbox, servers) = on_zookeeper(1);
    let needs = ["needs a store with leases"];
    sandbox.run("acquire x").fails(64, &needs);
    sandbox
        .run("run --lock-delay 1s x true")
        .fails(64, &["lock_delay"]);
    sandbox
        .run("members")
        .fails(64, &["ZooKeeper manages its members itself"]);
    let two = [servers.url(), servers.url()];
    sandbox.run_at(&two, "run x true").fails(64, &["zk://"]);
    let wrong = ["zk://u:secret@a?x=1".to_owned()];
    let refused = sandbox.run_at(&wrong, "run x true");
    assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
    refused.fails(64, &["unknown parameter"]);
}

#[test]
fn zookeeper_keeps_the_result_of_a_request() {
    let (sandbox, _servers) = on_zookeeper(3);
    let request = sh(
        "once pay/17",
        "echo x >> ran; echo \"done under $LEASEHOLD_FENCE\"",
    );
    let first = sandbox.run(&request);
    let again = sandbox.run(&request);
    assert_eq!(
        (again.code(), &again.stdout),
        (0, &first.stdout),
        "{first:?}"
    );
    assert_eq!(sandbox.lines_in("ran").len(), 1);
}

#[test]
fn zookeeper_elects_one_leader_after_another() {
    let (sandbox, _servers) = on_zookeeper(1);
    let lead = |who: &str| {
        let script = format!("echo {who} >> led; while :; do sleep 0.02; done");
        sandbox.start(&sh(&format!("elect -v --ttl 3s --value {who} x"), &script))
    };
    let first = lead("a");
    until("a leads", || sandbox.lines_in("led") == ["a"]);
    let second = lead("b");
    second.says("waiting for lock");
    let change = sandbox.run("elect --observe --once --json x").json_of_any();
    assert_eq!(change["leader"]["value"], "a");
    first.signal(Signal::SIGTERM);
    until("b leads", || sandbox.lines_in("led") == ["a", "b"]);
    drop(second);
}
