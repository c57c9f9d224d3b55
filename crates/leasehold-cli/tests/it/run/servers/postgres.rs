//! `run`, and the other ways to hold a lock, on a PostgreSQL server.

use leasehold_testkit::servers::{PostgresServer, until};

use crate::elections::elect::until_led;
use crate::support::harness::Sandbox;
use crate::support::processes::until_gone;
use crate::support::program::{assert_fields, sh};

#[test]
fn run_holds_the_lock_and_shows_its_fence() {
    let (sandbox, server) = Sandbox::on_postgres();
    let holder = sandbox.hold("x", "pid");
    sandbox.run("run -n x true").fails(75, &["held by"]);
    sandbox
        .run("run -n --shared x true")
        .fails(75, &["held by"]);
    let waiter = sandbox.start(&sh("run -v x", "echo $LEASEHOLD_FENCE > fence"));
    waiter.says("1st in the queue");
    sandbox.let_go();
    assert_eq!(holder.wait().code(), 0);
    waiter.wait().succeeds();
    let fence = server.sql("select fence from leasehold.lock where name = 'x';");
    assert_eq!(fence, [sandbox.line_in("fence")]);
    assert_eq!(sandbox.run(&sh("run x", "exit 3")).code(), 3);
}

#[test]
fn waiters_of_other_processes_are_served_in_order() {
    let (sandbox, _server) = Sandbox::on_postgres();
    let holder = sandbox.hold("x", "pid");
    let waits = |number: u32| {
        let waiter = sandbox.start(&sh("run -v x", &format!("echo {number} >> order")));
        let place = ["1st", "2nd", "3rd"][number as usize - 1];
        waiter.says(&format!("{place} in the queue"));
        waiter
    };
    let waiters = [waits(1), waits(2), waits(3)];
    sandbox.let_go();
    holder.wait().succeeds();
    for waiter in waiters {
        waiter.wait().succeeds();
    }
    assert_eq!(sandbox.lines_in("order"), ["1", "2", "3"]);
}

#[test]
fn dead_server_ends_the_command() {
    let (sandbox, mut server) = Sandbox::on_postgres();
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let run = sandbox.start(&sh("run --ttl 3s x", script));
    let command = sandbox.pid_in("pid");
    server.kill();
    until_gone(command);
    run.wait().fails(76, &["lost lock \"x\""]);
    server.restart();
    // The lease ended, and the data are there.
    until("the lock is free", || {
        sandbox.run("run -n x true").code() == 0
    });
}

#[test]
fn deleted_row_is_a_lost_lock() {
    let (sandbox, server) = Sandbox::on_postgres();
    let script = "echo $$ > pid; while :; do sleep 0.05; done";
    let run = sandbox.start(&sh("run --ttl 3s x", script));
    let command = sandbox.pid_in("pid");
    server.sql("update leasehold.lock set owner = null where name = 'x';");
    until_gone(command);
    run.wait()
        .fails(76, &["lost lock \"x\": the lease vanished"]);
}

#[test]
fn readers_and_permits_share_a_lock() {
    let (sandbox, _server) = Sandbox::on_postgres();
    let reader = sandbox.hold("--shared x", "reader");
    sandbox.run("run -n --shared x true").succeeds();
    sandbox.run("run -n x true").fails(75, &["held by"]);
    let one = sandbox.hold("--permits 2 y", "one");
    sandbox.run("run -n --permits 2 y true").succeeds();
    sandbox
        .run("run -n --permits 3 y true")
        .fails(64, &["in use with 2 permits, not 3"]);
    sandbox.let_go();
    for holder in [reader, one] {
        holder.wait().succeeds();
    }
}

#[test]
fn handle_holds_a_lock_between_commands() {
    let (sandbox, _server) = Sandbox::on_postgres();
    sandbox
        .run("acquire --ttl 60s --handle-file handle x")
        .succeeds();
    sandbox.run("acquire -n x").fails(75, &["held by"]);
    sandbox.run("renew --handle-file handle").succeeds();
    assert!(!sandbox.is_free("x"));
    sandbox.run("release --handle-file handle").succeeds();
    assert!(sandbox.is_free("x"));
}

#[test]
fn hold_keeps_the_lock_until_its_input_ends() {
    let (sandbox, _server) = Sandbox::on_postgres();
    sandbox.gate("gate");
    let held = sandbox.shell("\"$LEASEHOLD\" hold x < gate > held");
    let opened = std::fs::File::options()
        .write(true)
        .open(sandbox.path("gate"))
        .unwrap();
    until("it is told", || sandbox.lines_in("held").len() == 1);
    assert!(!sandbox.is_free("x"));
    drop(opened);
    assert_eq!(held.wait().code(), 0);
    assert!(sandbox.is_free("x"));
}

#[test]
fn request_takes_effect_once() {
    let (sandbox, mut server) = Sandbox::on_postgres();
    let command = sh("once pay/1", "echo ran >> log; echo paid");
    let first = sandbox.run(&command).succeeds();
    server.restart();
    let again = sandbox.run(&command).succeeds();
    assert_eq!(
        (first.stdout.as_str(), again.stdout.as_str()),
        ("paid\n", "paid\n")
    );
    assert_eq!(sandbox.lines_in("log"), ["ran"]);
}

#[test]
fn leader_is_elected_and_observed() {
    let (sandbox, _server) = Sandbox::on_postgres();
    let lead = |who: &str| {
        let script = format!(
            "echo $$ > {who}.pid; echo $LEASEHOLD_FENCE >> fences; while :; do sleep 0.02; done"
        );
        sandbox.start(&sh(&format!("elect -v --ttl 3s --value {who} x"), &script))
    };
    let first = lead("a");
    until_led(&sandbox, 1);
    let second = lead("b");
    second.says("waiting for lock");
    let observed = || {
        let seen = sandbox.run("elect --observe --once --json x").json_of_any();
        seen["leader"]["value"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    until("an observer sees it", || observed() == "a");
    first.signal(nix::sys::signal::Signal::SIGKILL);
    until_led(&sandbox, 2);
    until("an observer sees the next", || observed() == "b");
    drop(first);
}

#[test]
fn status_is_the_same_in_json() {
    let (sandbox, server) = Sandbox::on_postgres();
    let holder = sandbox.hold("x", "pid");
    let status = sandbox.run("status x --json").json();
    let fence: u64 = server
        .sql("select fence from leasehold.lock;")
        .remove(0)
        .parse()
        .unwrap();
    let fields = serde_json::json!({"fence": fence, "mode": "exclusive"});
    assert_fields(&status["holders"][0], fields);
    assert!(!status.to_string().contains(PostgresServer::PASSWORD));
    sandbox.let_go();
    holder.wait().succeeds();
}
