//! `--nested`: a run under the lease of its outer run, on files.

use std::fs;

use crate::harness::{Ended, Sandbox};
use crate::processes::{self, until_gone};

/// Runs `inner` in a shell below `leasehold run` with `outer`, and says how it ended.
fn within(sandbox: &Sandbox, outer: &[&str], inner: &str) -> Ended {
    let script = format!("\"$LEASEHOLD\" run {inner}; echo code-$?");
    sandbox.run(&[&["run"], outer, &["--", "sh", "-c", &script]].concat())
}

#[test]
fn nested_command_runs_under_the_outer_lease() {
    let sandbox = Sandbox::new();
    let fences = "sh -c 'echo $LEASEHOLD_NAME $LEASEHOLD_FENCE; exit 3'";
    let script = format!(
        "echo $LEASEHOLD_NAME $LEASEHOLD_FENCE; \"$LEASEHOLD\" run --nested x -- {fences}; echo $?"
    );
    let ended = sandbox.run(&["run", "x", "--", "sh", "-c", &script]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines, [lines[0], lines[0], "3"], "{ended:?}");
    assert!(lines[0].starts_with("x "));
    assert!(sandbox.is_free("x"));
}

#[test]
fn outer_lock_is_found_through_other_runs() {
    let sandbox = Sandbox::new();
    let inner =
        r#"inner -- "$LEASEHOLD" run --nested b -- "$LEASEHOLD" run --nested inner -- echo in"#;
    let ended = within(&sandbox, &["a", "--also", "b"], inner);
    assert_eq!(ended.stdout, "in\ncode-0\n", "{ended:?}");
    let again = r#"--nested x -- "$LEASEHOLD" run x -- true"#;
    within(&sandbox, &["x"], again).fails(0, &["held by an outer run"]);
}

#[test]
fn nested_without_outer_run_is_plain() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&[
        "run",
        "--nested",
        "x",
        "--",
        "sh",
        "-c",
        "echo $LEASEHOLD_NAME",
    ]);
    assert_eq!((ended.code(), &*ended.stdout), (0, "x\n"));
    let script = r#""$LEASEHOLD" run -n x -- true; echo code-$?"#;
    let ended = sandbox.run(&["run", "--nested", "x", "--", "sh", "-c", script]);
    assert_eq!(ended.stdout, "code-64\n", "it holds the lock");
    let other = r#"--nested -n y -- sh -c '"$LEASEHOLD" status y'"#;
    let ended = within(&sandbox, &["x"], other);
    assert!(
        ended.stdout.starts_with("y: held by leasehold"),
        "{ended:?}"
    );
}

#[test]
fn same_name_in_another_store_is_another_lock() {
    let sandbox = Sandbox::new();
    let inner = r#"--store "file://$BOX/other" --nested x -- "$LEASEHOLD" status --store "file://$BOX/other" x"#;
    let ended = within(&sandbox, &["x"], inner);
    assert!(ended.stdout.starts_with("x: held by"), "{ended:?}");
}

#[test]
fn nobody_lends_more_than_it_has() {
    let sandbox = Sandbox::new();
    let refused = |outer: &[&str], inner: &str, rule: &str| {
        let ended = within(&sandbox, outer, &format!("--nested {inner} -- touch ran"));
        ended.fails(0, &["is held by an outer run, leasehold", rule]);
        assert_eq!(ended.stdout, "code-64\n");
        assert!(!sandbox.path("ran").exists());
    };
    refused(&["-s", "x"], "x", "use -s here");
    refused(&["x"], "--permits 2 x", "--nested cannot take a permit");
    refused(
        &["-s", "x"],
        "--permits 2 x",
        "--nested cannot take a permit",
    );
    refused(&["--permits", "2", "x"], "x", "not the whole lock");
    for (outer, inner) in [(&["x"][..], "-s"), (&["-s", "x"], "-s"), (&["x"], "")] {
        let ended = within(&sandbox, outer, &format!("--nested {inner} x -- echo in"));
        assert_eq!(ended.stdout, "in\ncode-0\n", "{ended:?}");
    }
}

#[test]
fn nested_is_advised_only_where_it_works() {
    let sandbox = Sandbox::new();
    let advised = |outer: &[&str], inner: &str| {
        let ended = within(&sandbox, outer, &format!("-n {inner} -- touch ran"));
        ended.fails(0, &["is held by an outer run"]);
        assert_eq!(ended.stdout, "code-64\n");
        ended.stderr.contains("--nested")
    };
    assert!(advised(&["x"], "x") && advised(&["x"], "-s x"));
    assert!(!advised(&["-s", "x"], "x"), "it cannot be had alone");
    assert!(!advised(&["x"], "--permits 2 x"), "it has no permits");
    assert!(!advised(&["--permits", "2", "x"], "x"), "not all of it");
    assert!(!advised(&["x"], "y --also x"), "not with --also");
}

#[test]
fn outer_run_without_the_lock_is_76() {
    let sandbox = Sandbox::new();
    // Left behind by a run that ended: it has the run's environment, and the lock is free.
    let left = r#"while [ ! -e go ]; do sleep 0.02; done
        "$LEASEHOLD" run --nested x -- touch ran 2> said; echo code-$? > code"#;
    let script = "sh -c \"$LEFT\" > /dev/null 2>&1 & exit 0";
    let mut command = sandbox.leasehold();
    command
        .env("LEFT", left)
        .args(["run", "x", "--", "sh", "-c", script]);
    assert_eq!(sandbox.spawn(command).wait().code(), 0);
    assert!(sandbox.is_free("x"));
    fs::write(sandbox.path("go"), "").unwrap();
    assert_eq!(sandbox.line_in("code"), "code-76");
    let said = sandbox.line_in_if_any("said");
    assert!(
        said.contains("lock \"x\": the outer run no longer holds it"),
        "{said}"
    );
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn nested_command_ends_with_the_outer_run() {
    let sandbox = Sandbox::new();
    let left = r#""$LEASEHOLD" run --json --ttl 600ms --nested x -- sh -c 'echo $$ > pid; sleep 1000' 2> said
        echo code-$? > code"#;
    let script = "sh -c \"$LEFT\" > /dev/null 2>&1 & while [ ! -s pid ]; do sleep 0.02; done";
    let mut command = sandbox.leasehold();
    command
        .env("LEFT", left)
        .args(["run", "x", "--", "sh", "-c", script]);
    assert_eq!(sandbox.spawn(command).wait().code(), 0);
    let command = sandbox.pid_in("pid");
    until_gone(command);
    assert_eq!(sandbox.line_in("code"), "code-76");
    let said = sandbox.lines_in("said");
    assert!(said[0].contains(r#""event":"nested""#), "{said:?}");
    assert!(said[1].contains(r#""event":"lost""#), "{said:?}");
}

#[test]
fn killing_outer_wrapper_ends_nested_command() {
    let sandbox = Sandbox::new();
    let inner = "trap '' TERM; echo $$ > inner; while :; do sleep 0.02; done";
    let script = format!(
        "\"$LEASEHOLD\" run --nested x -- sh -c \"{}\"",
        inner.replace('$', "\\$")
    );
    let run = sandbox.start(&["run", "--grace", "200ms", "x", "--", "sh", "-c", &script]);
    let command = sandbox.pid_in("inner");
    processes::signal(run.pid(), nix::sys::signal::Signal::SIGKILL);
    assert_eq!(sandbox.run(&["run", "-w", "25s", "x", "true"]).code(), 0);
    until_gone(command);
}
