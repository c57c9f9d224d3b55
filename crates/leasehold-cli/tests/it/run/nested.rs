//! `--nested`: a run under the lease of its outer run, on files.

use std::fs;

use crate::support::harness::Sandbox;
use crate::support::processes::{self, until_gone};

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
