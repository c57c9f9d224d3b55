//! Looking at locks on ZooKeeper, breaking them, and `doctor`.

use leasehold_testkit::servers::{Zookeeper, until};

use crate::administration::doctor::{is_documented, report};
use crate::administration::redis_doctor::found;
use crate::run::servers::zookeeper::on_zookeeper;
use crate::support::harness::Sandbox;
use crate::support::program::sh;

#[test]
fn zookeeper_shows_holders_and_waiters() {
    let (sandbox, _servers) = on_zookeeper(3);
    let holder = sandbox.hold("a/b", "pid");
    let waiter = sandbox.start("run -v a/b true");
    waiter.says("waiting for lock");
    let status = sandbox.run("status a/b --json").json();
    assert_eq!(status["held"], true, "{status}");
    assert!(status["holders"][0]["fence"].is_u64(), "{status}");
    assert!(status["holders"][0]["pid"].is_u64(), "{status}");
    let listed = sandbox.run("ls --json").json();
    assert_eq!(listed["locks"][0]["lock"], "a/b", "{listed}");
    until("one waits", || {
        sandbox.run("waiters a/b --json").json()["waiters"]
            .as_array()
            .is_some_and(|all| all.len() == 1)
    });
    sandbox.let_go();
    holder.wait().succeeds();
    waiter.wait().succeeds();
    assert_eq!(sandbox.run("ls").code(), 0);
}

#[test]
fn zookeeper_lock_is_broken_at_once_or_later() {
    let (sandbox, _servers) = on_zookeeper(1);
    for at_once in ["--now", ""] {
        let script = "echo $LEASEHOLD_FENCE > fence; while :; do sleep 0.02; done";
        let holder = sandbox.start(&sh("run --ttl 3s x", script));
        let fence = sandbox.line_in("fence");
        let broken = sandbox.run(&format!(
            "break x --fence {fence} {at_once} --reason test --json"
        ));
        let broken = broken.json();
        assert_eq!(broken["broken"]["reason"], "test", "{broken}");
        assert_eq!(
            broken["closed_for_ms"].is_null(),
            !at_once.is_empty(),
            "{broken}"
        );
        holder.wait().fails(76, &["an operator broke the lock"]);
        sandbox.run("run -w 20s x true").succeeds();
        let _ = std::fs::remove_file(sandbox.path("fence"));
    }
}

#[test]
fn zookeeper_doctor_finds_nothing_wrong_and_each_fault() {
    let mut servers = Zookeeper::builder().members(3).start();
    let sandbox = Sandbox::on(&[servers.url() + "/locks?timeout=5s"]);
    let healthy = sandbox.run("doctor --json");
    let shown = report(&healthy);
    assert_eq!(healthy.code(), 0, "{shown}");
    assert_eq!(shown["voting"], 3, "{shown}");
    let of_members = shown["members"].as_array().unwrap();
    assert!(
        of_members
            .iter()
            .any(|member| member["facts"]["mode"] == "leader"),
        "{shown}"
    );
    is_documented(&sandbox, &shown);
    let frozen = (0..3).find(|number| *number != servers.leader()).unwrap();
    servers.kill(frozen);
    let less = report(&sandbox.run("doctor --json"));
    assert!(found(&less, "quorum").contains("2 of 3"), "{less}");
    is_documented(&sandbox, &less);
    let other = (0..3).find(|number| *number != frozen).unwrap();
    servers.kill(other);
    let down = sandbox.run("doctor --json");
    assert_ne!(down.code(), 0, "{}", down.stdout);
    assert!(found(&report(&down), "quorum").contains("without a majority"));
}
