//! What others see of a holder: in text, and in JSON.

use serde_json::{Value, json};

use crate::support::harness::Sandbox;
use crate::support::program::{Running, assert_fields};
use crate::support::stores::{TestStore, on_stores};

/// Runs `cat gate` under the lock `x` until the gate is opened.
fn hold(sandbox: &Sandbox, args: &str) -> Running {
    sandbox.gate("gate");
    let holder = sandbox.start(&format!("run {args} x cat gate"));
    leasehold_testkit::servers::until("the lock is held", || !sandbox.is_free("x"));
    holder
}

fn holder(sandbox: &Sandbox) -> Value {
    sandbox.run("status --json x").json()["holders"][0].clone()
}

on_stores!(holder_is_shown_with_label_and_command: file redis redis_quorum);

fn holder_is_shown_with_label_and_command(sandbox: &TestStore) {
    let running = hold(sandbox, "--label nightly --show-command line");
    let seen = holder(sandbox);
    let known = json!({
        "pid": running.pid(), "program": "leasehold", "label": "nightly", "command": "cat gate"
    });
    assert_fields(&seen, known);
    let user = seen["user"].as_str().unwrap();
    let text = format!(", user {user}, label nightly, running cat gate)");
    let shown = sandbox.run("status x").stdout;
    assert!(shown.contains(&text), "{shown}");
    let shown = sandbox.run("ls").stdout;
    for cell in ["cat gate", user, "nightly"] {
        assert!(shown.contains(&format!("  {cell}  ")), "{shown}");
    }
    sandbox.run("run -n x true").fails(75, &[&text]);
    let waiter = sandbox.start("run -v --label second x true");
    waiter.says(&text);
    sandbox.open_gate("gate");
    running.wait().succeeds();
    waiter.wait().succeeds();
}

#[test]
fn command_is_hidden_on_request() {
    let sandbox = Sandbox::new();
    let running = hold(&sandbox, "--show-command none");
    assert_eq!(holder(&sandbox)["command"], Value::Null);
    sandbox.open_gate("gate");
    running.wait().succeeds();
    let hidden = ("LEASEHOLD_SHOW_COMMAND", "none");
    let running = sandbox.start_with(hidden, "run y cat gate");
    leasehold_testkit::servers::until("the lock is held", || !sandbox.is_free("y"));
    let status = sandbox.run("status y").stdout;
    assert!(!status.contains("running"), "{status}");
    sandbox.open_gate("gate");
    running.wait().succeeds();
}

#[test]
fn command_is_hidden_by_the_configuration_file() {
    let (sandbox, server) = Sandbox::on_redis();
    std::fs::write(
        sandbox.path("c.toml"),
        format!("store = '{}'\nshow_command = 'none'\n", server.url()),
    )
    .unwrap();
    sandbox.gate("gate");
    let mut command = sandbox.without_store();
    command.env("LEASEHOLD_CONFIG", sandbox.path("c.toml"));
    command.args(["run", "x", "cat", "gate"]);
    let running = sandbox.spawn(command);
    leasehold_testkit::servers::until("the lock is held", || !sandbox.is_free("x"));
    assert_eq!(holder(&sandbox)["command"], Value::Null);
    sandbox.open_gate("gate");
    running.wait().succeeds();
}

#[test]
fn waiter_is_shown_with_its_label() {
    let (sandbox, _server) = Sandbox::on_redis();
    let running = hold(&sandbox, "");
    assert_eq!(
        holder(&sandbox)["command"],
        "cat",
        "arguments may be secret"
    );
    let waiter = sandbox.start("run -v --label second x true");
    waiter.says("1st in the queue");
    let waiters = sandbox.run("waiters --json x").json();
    let known = json!({"pid": waiter.pid(), "label": "second", "command": "true"});
    assert_fields(&waiters["waiters"][0]["client"], known);
    sandbox.open_gate("gate");
    running.wait().succeeds();
    waiter.wait().succeeds();
}

#[test]
fn handle_names_the_process_that_took_it() {
    let (sandbox, server) = Sandbox::on_redis();
    let acquired = sandbox.start("acquire --label blue --handle-file handle x");
    let pid = acquired.pid();
    acquired.wait().succeeds();
    let known =
        json!({"pid": pid, "program": "leasehold acquire", "label": "blue", "command": null});
    assert_fields(&holder(&sandbox), known.clone());
    for _ in 0..2 {
        sandbox.run("renew --handle-file handle").succeeds();
        assert_fields(&holder(&sandbox), known.clone());
    }
    drop(server);
}

#[test]
fn long_label_is_refused() {
    let sandbox = Sandbox::new();
    let long = "x".repeat(65);
    let refused = sandbox.run(&format!("run --label {long} x true"));
    refused.fails(64, &[&long, "a label has 1 to 64 bytes"]);
}
