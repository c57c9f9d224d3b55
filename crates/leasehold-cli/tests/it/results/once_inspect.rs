//! `once --show` and `once --forget`.

use serde_json::json;

use crate::support::harness::Sandbox;
use crate::support::program::{assert_fields, sh};
use crate::support::stores::{TestStore, on_stores};

// The contract suite lists records of the other stores.
on_stores!(result_is_shown_and_forgotten: file redis redis_quorum);

fn result_is_shown_and_forgotten(sandbox: &TestStore) {
    let shown = sandbox.run("once --show pay/1");
    assert_eq!((shown.code(), &*shown.stdout), (1, "pay/1: no request\n"));
    let pay = sh("once pay/1", "echo paid; echo paid >> ledger");
    sandbox.run(&pay).succeeds();
    let shown = sandbox.run("once --show pay/1").succeeds().stdout;
    let text = "pay/1: done: exit 0, 5 bytes on stdout, 0 on stderr; kept for ";
    assert!(shown.starts_with(text), "{shown}");
    let shown = sandbox.run("once --show --json pay/1").json();
    assert_fields(
        &shown,
        json!({"key": "pay/1", "state": "done", "exit_code": 0}),
    );
    sandbox.run(&sh("once pay/2", "echo paid too")).succeeds();
    sandbox.run("run pay/3 true").succeeds();
    let listed = sandbox.run("once --list pay/*").succeeds().stdout;
    let keys = |text: &str| {
        text.lines()
            .map(|line| line.split(": ").next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&listed), ["pay/1", "pay/2"], "{listed}");
    assert!(listed.starts_with(text), "{listed}");
    let first = sandbox.run("once --list --limit 1").succeeds().stdout;
    let more = "more records match; --limit 1 leaves them out";
    assert_eq!(keys(&first), ["pay/1", more], "{first}");
    let listed = sandbox.run("once --list --json *2").json();
    assert_fields(&listed, json!({"pattern": "*2", "more": false}));
    assert_eq!(listed["requests"].as_array().unwrap().len(), 1, "{listed}");
    assert_fields(
        &listed["requests"][0],
        json!({"key": "pay/2", "state": "done", "exit_code": 0}),
    );
    let none = sandbox.run("once --list other*").succeeds().stdout;
    assert_eq!(none, "no request whose key matches \"other*\"\n");
    let forgotten = sandbox.run("once --forget pay/1").succeeds();
    assert_eq!(forgotten.stdout, "pay/1: forgotten\n");
    let again = sandbox.run("once --forget --json pay/1");
    assert_eq!(again.code(), 1);
    assert_eq!(again.json_of_any()["forgotten"], false);
    // Another command is fine now.
    sandbox
        .run(&sh("once pay/1", "echo paid >> ledger"))
        .succeeds();
    assert_eq!(sandbox.lines_in("ledger").len(), 2);
    sandbox.run("once --forget pay/2").succeeds();
    let listed = sandbox.run("once --list").succeeds().stdout;
    assert_eq!(keys(&listed), ["pay/1"], "{listed}");
    sandbox.run("once --forget pay/1").succeeds();
}

#[test]
fn list_leaves_out_other_records() {
    let sandbox = Sandbox::new();
    let leads = sh("elect --value v leader", "$LEASEHOLD once --list");
    let leader = sandbox.run(&leads).succeeds();
    assert_eq!(leader.stdout, "no request whose key matches \"*\"\n");
    let long = "k".repeat(300);
    sandbox.run(&sh(&format!("once {long}"), "true")).succeeds();
    let listed = sandbox.run("once --list").succeeds().stdout;
    assert!(listed.starts_with(&format!("{long}: done: ")), "{listed}");
    sandbox.run("once --limit 5 x true").fails(64, &["--limit"]);
    sandbox.run("once --list --show x").fails(64, &["--list"]);
    sandbox
        .run(&["once", "--list", ""])
        .fails(64, &["the pattern is empty"]);
}

#[test]
fn running_request_is_shown_and_not_forgotten() {
    let sandbox = Sandbox::new();
    sandbox.gate("gate");
    let attempt = sandbox.start(&sh("once key", "echo > begun; read line < gate"));
    sandbox.line_in("begun");
    let shown = sandbox.run("once --show key");
    assert_eq!(shown.code(), 1);
    assert!(shown.stdout.starts_with("key: begun"), "{shown:?}");
    sandbox
        .run("once --forget key")
        .fails(75, &["a caller is running this request"]);
    sandbox.open_gate("gate");
    attempt.wait().succeeds();
    sandbox.run("once --forget key").succeeds();
}

#[test]
fn show_takes_no_command() {
    let sandbox = Sandbox::new();
    sandbox.run("once --show key true").fails(64, &["--show"]);
    sandbox.run("once key").fails(64, &["CMD"]);
}
