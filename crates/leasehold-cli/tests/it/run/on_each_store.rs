//! What `run` does on each store: waiters take turns, and a lock ends with its holder or its server.

use std::os::unix::process::ExitStatusExt as _;

use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;

use crate::support::harness::Sandbox;
use crate::support::processes::until_gone;
use crate::support::program::{Running, sh};
use crate::support::stores::{TestStore, on_stores};

/// The processes that wait, in order; 0 where the process is not known yet.
pub(crate) fn waiting(sandbox: &Sandbox) -> Vec<i64> {
    let status = sandbox.run("status --json x").json();
    let waiters = status["waiters"].as_array().unwrap().iter();
    let pids = waiters.map(|waiter| waiter["client"]["pid"].as_i64());
    pids.map(Option::unwrap_or_default).collect()
}

pub(crate) fn until_waiting(sandbox: &Sandbox, count: usize) {
    until(&format!("{count} wait"), || waiting(sandbox).len() == count);
}

on_stores!(waiters_run_in_order: redis redis_quorum postgres etcd zookeeper);

fn waiters_run_in_order(sandbox: &TestStore) {
    let holder = sandbox.hold("x", "held");
    // A session of ZooKeeper has no deadline.
    let expiry = match sandbox.store().starts_with("z") {
        true => "",
        false => ", expires in ",
    };
    let busy = ["lock \"x\" is held by leasehold", expiry];
    sandbox.until_named("run -n x touch touched", &busy);
    sandbox.until_named("run -n -s x touch touched", &busy);
    let gave_up = ["gave up after 1s"];
    sandbox.run("run -w 1s x touch touched").fails(75, &gave_up);
    assert!(!sandbox.path("touched").exists());
    let places = ["1st", "2nd", "3rd", "4th"];
    let wait = |(number, place): (usize, &str)| {
        let script = format!("echo {place} >> order; echo $LEASEHOLD_FENCE >> fences");
        let waiter = sandbox.start(&sh("run -v x", &script));
        waiter.says(&format!("{place} in the queue"));
        until_waiting(sandbox, number + 1);
        waiter
    };
    let waiters: Vec<Running> = places.into_iter().enumerate().map(wait).collect();
    let pids: Vec<i64> = waiters.iter().map(|run| run.pid().into()).collect();
    until("all are known by name", || waiting(sandbox) == pids);
    sandbox.finish(holder);
    for waiter in waiters {
        waiter.wait().succeeds();
    }
    assert_eq!(sandbox.lines_in("order"), places);
    let fences = sandbox.lines_in("fences").into_iter();
    let fences: Vec<u64> = fences.map(|fence| fence.parse().unwrap()).collect();
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
    assert!(fences[0] > sandbox.fence("held"));
    assert!(sandbox.is_free("x"));
    sandbox.run(&sh("run x", "exit 7")).fails(7, &[]);
}

on_stores!(lock_of_a_killed_process_is_freed: postgres etcd zookeeper);

fn lock_of_a_killed_process_is_freed(sandbox: &TestStore) {
    let holder = sandbox.hold("--ttl 2s x", "pid");
    holder.signal(Signal::SIGKILL);
    sandbox.run("run -w 20s x true").succeeds();
    until_gone(sandbox.pid_in("pid"));
}

on_stores!(dead_server_ends_the_command: redis postgres etcd zookeeper);

fn dead_server_ends_the_command(sandbox: &mut TestStore) {
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let run = sandbox.start(&sh("run --ttl 3s x", script));
    let command = sandbox.pid_in("pid");
    sandbox.kill();
    until_gone(command);
    run.wait().fails(76, &["lost lock \"x\""]);
    sandbox.run("run -w 1s x true").fails(69, &["127.0.0.1"]);
    sandbox.restart();
    sandbox.run("run -w 20s x true").succeeds();
}

on_stores!(deleted_lock_is_lost_at_next_renewal: file redis postgres);

fn deleted_lock_is_lost_at_next_renewal(sandbox: &TestStore) {
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let run = sandbox.start(&sh("run --ttl 3s x", script));
    let command = sandbox.pid_in("pid");
    sandbox.delete("x");
    until_gone(command);
    let ended = run.wait();
    ended.fails(76, &["lost lock \"x\": "]);
    if sandbox.has_leases() {
        ended.fails(76, &["the lease vanished"]);
    }
    assert_eq!(ended.stderr.matches("lost lock").count(), 1, "{ended:?}");
}

on_stores!(signal_ends_a_wait_without_trace: file redis postgres etcd zookeeper);

fn signal_ends_a_wait_without_trace(sandbox: &TestStore) {
    let first = sandbox.hold("x", "held");
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let second = sandbox.start("run -v x touch second");
        second.says("waiting for ");
        second.signal(signal);
        // A shell would go on with its script after an exit code.
        assert_eq!(second.wait().status.signal(), Some(signal as i32));
        assert_eq!(waiting(sandbox), [0; 0]);
    }
    let busy = sandbox.run("run -w 1s x true");
    busy.fails(75, &["gave up after 1s"]);
    assert_eq!(waiting(sandbox), [0; 0], "nor after its limit");
    sandbox.finish(first);
    assert!(!sandbox.path("second").exists());
    assert!(sandbox.is_free("x"));
}
