//! Locks that are held from step to step: `run --handle-file`, and `acquire --renew-for`.

use std::fs;
use std::time::Duration;

use leasehold_testkit::servers::{Reply, until};

use crate::support::harness::Sandbox;
use crate::support::processes::outlast;
use crate::support::program::sh;
use crate::support::stores::{TestStore, on_stores};

/// Waits until a lease of 3 s without renewals is over for long.
fn outlast_the_ttl() {
    outlast(Duration::from_secs(9));
}

on_stores!(step_renews_and_leaves_the_redis_lock: redis redis_quorum);

fn step_renews_and_leaves_the_redis_lock(sandbox: &TestStore) {
    sandbox.run("acquire --ttl 3s --handle-file h x").succeeds();
    let before = fs::read_to_string(sandbox.path("h")).unwrap();
    sandbox.gate("gate");
    let script = "echo $LEASEHOLD_NAME > step; read line < gate; exit 3";
    let step = sandbox.start(&sh("run --handle-file h", script));
    assert_eq!(sandbox.line_in("step"), "x");
    outlast_the_ttl();
    assert!(!sandbox.is_free("x"));
    sandbox.open_gate("gate");
    let step = step.wait();
    assert_eq!((step.code(), &*step.stderr), (3, ""));
    assert!(!sandbox.is_free("x"), "the next step has it");
    assert_ne!(fs::read_to_string(sandbox.path("h")).unwrap(), before);
    sandbox.run("run --handle-file h -c true").succeeds();
    sandbox.run("release --handle-file h").succeeds();
    assert!(sandbox.is_free("x"));
}

#[test]
fn step_of_a_lost_redis_lock_ends() {
    let (sandbox, server) = Sandbox::on_redis();
    sandbox.run("acquire --ttl 3s --handle-file h x").succeeds();
    let step = sandbox.start(&sh("run --handle-file h", "echo > step; sleep 1000"));
    sandbox.line_in("step");
    assert_eq!(server.command(&["DEL", "x"]), Reply::Integer(1));
    step.wait().fails(76, &["lost lock \"x\""]);
    let next = sandbox.run(&sh("run --handle-file h", "echo never"));
    assert_eq!((next.code(), &*next.stdout), (76, ""), "{next:?}");
}

#[test]
fn handle_of_a_step_takes_no_name() {
    let sandbox = Sandbox::new();
    sandbox
        .run("run --handle-file missing -- true")
        .fails(74, &["cannot read missing"]);
    sandbox
        .run("run --handle-file h --ttl 5s -- true")
        .fails(64, &["--ttl"]);
}

on_stores!(redis_lock_is_renewed_until_release: redis redis_quorum);

fn redis_lock_is_renewed_until_release(sandbox: &TestStore) {
    let acquire = "acquire --ttl 3s --renew-for 1h --handle-file h x";
    sandbox.run(acquire).succeeds();
    outlast_the_ttl();
    assert!(!sandbox.is_free("x"));
    sandbox.run("run --handle-file h -- true").succeeds();
    sandbox.run("renew --handle-file h").succeeds();
    sandbox.run("release --handle-file h").succeeds();
    assert!(sandbox.is_free("x"));
    // The renewer ends, and has nothing to say.
    until("the log is gone", || !sandbox.path("h.log").exists());
    assert!(!sandbox.path("h").exists());
}

#[test]
fn redis_renewals_end_with_their_time() {
    let (sandbox, _server) = Sandbox::on_redis();
    let acquire = "acquire --ttl 3s --renew-for 4s --handle-file h x";
    sandbox.run(acquire).succeeds();
    until("the lock is free", || sandbox.is_free("x"));
    let log = fs::read_to_string(sandbox.path("h.log")).unwrap();
    assert!(log.contains("the time of --renew-for is over"), "{log}");
}

#[test]
fn redis_loss_is_in_the_log_of_renewals() {
    let (sandbox, server) = Sandbox::on_redis();
    let acquire = "acquire --ttl 3s --renew-for 1h --handle-file h x";
    sandbox.run(acquire).succeeds();
    server.command(&["DEL", "x"]);
    until("the loss is in the log", || {
        fs::read_to_string(sandbox.path("h.log")).is_ok_and(|log| log.contains("lost"))
    });
}

#[test]
fn renewals_need_a_file() {
    let sandbox = Sandbox::new();
    sandbox
        .run("acquire --renew-for 1h x")
        .fails(64, &["--handle-file"]);
}

on_stores!(portable_redis_handle_is_renewed_without_a_deadline: redis redis_quorum);

fn portable_redis_handle_is_renewed_without_a_deadline(sandbox: &TestStore) {
    let portable = "acquire --ttl 60s --portable --handle-file h y";
    sandbox.run(portable).succeeds();
    for _ in 0..2 {
        let step = sandbox.run("run --handle-file h -- true");
        assert_eq!(step.succeeds().stderr, "");
    }
    sandbox.run("release --handle-file h").succeeds();
    sandbox.run("renew --handle-file h").fails(74, &["h"]);
}
