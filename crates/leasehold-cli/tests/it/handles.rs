//! Handles: what the command refuses before it sends anything.

use std::fs;

use crate::harness::{Ended, Sandbox};

fn with_handle(sandbox: &Sandbox, handle: &str, args: &[&str]) -> Ended {
    let mut command = sandbox.without_store();
    command
        .env("LEASEHOLD_STORE", NOBODY)
        .env("LEASEHOLD_HANDLE", handle);
    command.args(args);
    sandbox.spawn(command).wait()
}

#[test]
fn handle_in_arguments_is_refused_without_echo() {
    let sandbox = Sandbox::new();
    for subcommand in ["renew", "release"] {
        for args in [
            &[subcommand, "lh1_secret"][..],
            &[subcommand, "--json", "lh1_secret", "more"],
            &[subcommand, "--handle", "lh1_secret"],
            &[subcommand, "--handle=lh1_secret"],
            &[subcommand, "--handle-file", "lh1_secret"],
            &[subcommand, "--handle-file=lh1_secret"],
        ] {
            let ended = with_handle(&sandbox, "lh1_other", args);
            ended.fails(64, &["users can read arguments", "--handle-file"]);
            assert!(!ended.stderr.contains("secret"), "{ended:?}");
        }
    }
}

#[test]
fn invalid_handle_is_refused_without_echo() {
    let sandbox = Sandbox::new();
    for subcommand in ["renew", "release"] {
        for (handle, rule) in [
            ("", "no handle in LEASEHOLD_HANDLE"),
            (" \n", "no handle in LEASEHOLD_HANDLE"),
            ("secret", "begin with lh1_"),
            ("lh1_00secret", "damaged"),
            ("lh9_secret", "another version"),
        ] {
            let ended = with_handle(&sandbox, handle, &[subcommand]);
            ended.fails(64, &[rule, "LEASEHOLD_HANDLE"]);
            assert!(!ended.stderr.contains("secret"), "{ended:?}");
        }
        // Its stdin is at its end.
        let mut command = sandbox.without_store();
        command.env("LEASEHOLD_STORE", NOBODY).arg(subcommand);
        let ended = sandbox.spawn(command).wait();
        ended.fails(64, &["no handle in stdin"]);
        let ended = with_handle(&sandbox, "", &[subcommand, "--handle-file", "nowhere"]);
        ended.fails(74, &["cannot read nowhere"]);
        fs::write(sandbox.path("long"), "x".repeat(1 << 20)).unwrap();
        let ended = with_handle(&sandbox, "", &[subcommand, "--handle-file", "long"]);
        ended.fails(64, &["long: the handle is none that leasehold made"]);
        let ended = with_handle(&sandbox, "", &[subcommand, "--handle-file", "/dev/zero"]);
        ended.fails(64, &["/dev/zero: the handle is none that leasehold made"]);
    }
}

#[test]
fn file_store_refuses_handles() {
    let sandbox = Sandbox::new();
    for args in [&["acquire", "x"][..], &["renew"], &["release"]] {
        let ended = sandbox.run(args);
        ended.fails(64, &[args[0], "ends with the process", "`leasehold hold`"]);
        assert_eq!(ended.stdout, "");
        assert!(sandbox.is_free("x"));
    }
}

/// An address without a server, which no test contacts.
const NOBODY: &str = "redis://127.0.0.1:1";
