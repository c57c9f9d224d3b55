//! Runs in a PID namespace of their own, where `/proc` may show another one.

use std::process::Command;

use crate::support::harness::{PROGRAM, Sandbox};
use crate::support::program::Ended;

/// Runs `program` in new namespaces, which `unshare` makes with these `options`.
fn run_apart(sandbox: &Sandbox, options: &[&str], program: &[&str]) -> Ended {
    let mut command = Command::new("unshare");
    sandbox.furnish(&mut command);
    command.env("LEASEHOLD_STORE", sandbox.store());
    if !nix::unistd::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(options).arg("--").args(program);
    let ended = sandbox.spawn(command).wait();
    assert!(
        !ended.stderr.starts_with("unshare:"),
        "this test needs a kernel that allows namespaces: {ended:?}"
    );
    ended
}

const FOREIGN_PROC: [&str; 3] = ["--pid", "--fork", "--kill-child"];

#[test]
fn command_is_refused_where_proc_is_foreign() {
    let sandbox = Sandbox::new();
    for subcommand in ["run", "elect", "once"] {
        let args = [PROGRAM, subcommand, "x", "--", "touch", "ran"];
        let ended = run_apart(&sandbox, &FOREIGN_PROC, &args);
        let reason = ["/proc", "another PID namespace", "this process is 1"];
        ended.fails(125, &reason);
        assert!(!sandbox.path("ran").exists(), "{subcommand}");
        assert!(sandbox.is_free("x"), "{subcommand}");
    }
}

#[test]
fn command_is_refused_where_proc_is_missing() {
    let sandbox = Sandbox::new();
    let script = "mount -t tmpfs none /proc && exec \"$LEASEHOLD\" run x -- touch ran";
    let ended = run_apart(&sandbox, &["--mount"], &["sh", "-c", script]);
    ended.fails(125, &["cannot start: /proc does not show this process"]);
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn descendants_end_in_a_namespace_with_its_proc() {
    let sandbox = Sandbox::new();
    let script = "
        \"$LEASEHOLD\" run x --max-hold 2s -- sh -c '
            setsid sh -c \"echo \\$\\$ > stray; exec sleep 1000\" & wait'
        code=$?
        ! kill -0 $(cat stray) && exit $code";
    let options = [&FOREIGN_PROC[..], &["--mount-proc"]].concat();
    let ended = run_apart(&sandbox, &options, &["sh", "-c", script]);
    assert_eq!(ended.code(), 76, "{ended:?}");
    assert!(sandbox.path("stray").exists());
    assert!(sandbox.is_free("x"));
}
