//! `once --show` and `once --forget`.

use serde_json::json;

use crate::support::harness::Sandbox;
use crate::support::program::{assert_fields, sh};

#[test]
fn result_is_shown_and_forgotten() {
    on_all_stores_with_records(|sandbox| {
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
    });
}

/// Runs `test` with lock files, one Redis server, and a durable quorum.
fn on_all_stores_with_records(test: impl Fn(&Sandbox)) {
    test(&Sandbox::new());
    let one = Sandbox::on_redis();
    test(&one.0);
    let three = Sandbox::on_durable_quorum(3);
    test(&three.0);
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
