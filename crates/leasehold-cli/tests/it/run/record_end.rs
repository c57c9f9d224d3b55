//! How the last command ended, as `status` shows it.

use serde_json::json;

use crate::support::harness::Sandbox;
use crate::support::program::{assert_fields, sh};
use crate::support::stores::{TestStore, on_stores};

on_stores!(status_shows_how_the_last_run_ended: file redis redis_quorum);

fn status_shows_how_the_last_run_ended(sandbox: &TestStore) {
    sandbox.run("run x true").succeeds();
    assert!(sandbox.is_free("x"), "nothing is recorded unless asked for");
    let run = sandbox.run(&sh("run --record-end --label night x", "exit 3"));
    run.fails(3, &[]);
    let shown = sandbox.run("status x").succeeds().stdout;
    let (first, second) = shown.split_once('\n').unwrap();
    assert_eq!(first, "x: free");
    assert!(
        second.starts_with("x: last run by leasehold (pid "),
        "{shown}"
    );
    assert!(
        second.contains("label night, running sh), ended "),
        "{shown}"
    );
    assert!(second.ends_with(", exit 3\n"), "{shown}");
    // While it is held, only the holder is shown.
    let inside = sandbox.run(&sh("run x", "$LEASEHOLD status x")).succeeds();
    assert!(!inside.stdout.contains("last run"), "{inside:?}");
    let lost = sandbox.run("run --record-end --max-hold 1s x sleep 100");
    lost.fails(76, &[]);
    let status = sandbox.run("status --json x").json();
    assert_fields(&status["last_run"], json!({"exit_code": null}));
    let shown = sandbox.run("status x").succeeds().stdout;
    assert!(shown.ends_with(", lock lost\n"), "{shown}");
}

#[test]
fn status_tells_a_missing_command_from_a_loss() {
    let sandbox = Sandbox::new();
    let run = sandbox.run("run --record-end x /nonexistent");
    run.fails(127, &["cannot run"]);
    let shown = sandbox.run("status x").succeeds().stdout;
    let end = ", the command could not be started (exit 127)\n";
    assert!(shown.ends_with(end), "{shown}");
    let status = sandbox.run("status --json x").json();
    assert_fields(&status["last_run"], json!({"exit_code": 127}));
}

#[test]
fn record_of_an_election_is_left_alone() {
    let sandbox = Sandbox::new();
    sandbox.run("once x true").succeeds();
    let ended = sandbox.run("run --record-end x true").succeeds();
    let warning = "the end of the command under lock \"x\" is not recorded";
    assert!(ended.stderr.contains(warning), "{ended:?}");
    assert!(sandbox.is_free("x"));
    sandbox.run("once --show x").succeeds();
    sandbox
        .run("run --record-end -s x true")
        .fails(64, &["cannot be used with"]);
}
