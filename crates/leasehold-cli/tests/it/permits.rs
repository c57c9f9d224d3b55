//! One of N permits, on files.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{Running, Sandbox};
use crate::processes::until_gone;

/// Holds a permit of `workers` until the file `go` exists. The file `name` has its process id.
fn hold(sandbox: &Sandbox, permits: &str, name: &str) -> Running {
    let script = format!("echo $$ > {name}; while [ ! -e go ]; do sleep 0.02; done");
    let args = [
        "run",
        "--permits",
        permits,
        "workers",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let holder = sandbox.start(&args);
    sandbox.pid_in(name);
    holder
}

#[test]
fn runs_fill_the_permits_and_one_waits() {
    let sandbox = Sandbox::new();
    let holders = ["one", "two"].map(|name| hold(&sandbox, "2", name));
    let args = ["run", "-n", "--permits", "2", "workers", "touch", "ran"];
    sandbox
        .run(&args)
        .fails(75, &["workers", "held by leasehold", "one of 2 permits"]);
    let third = sandbox.start(&["run", "--permits", "2", "workers", "touch", "ran"]);
    third.says("waiting for lock \"workers\"");
    assert!(!sandbox.path("ran").exists());
    fs::write(sandbox.path("go"), "").unwrap();
    assert_eq!(third.wait().code(), 0);
    assert!(holders.into_iter().all(|holder| holder.wait().code() == 0));
    assert!(sandbox.path("ran").exists() && sandbox.is_free("workers"));
}

#[test]
fn the_status_counts_the_permits() {
    let sandbox = Sandbox::new();
    let holders = ["one", "two"].map(|name| hold(&sandbox, "3", name));
    let text = sandbox.run(&["status", "workers"]).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "workers: 2 of 3 permits are held");
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[1..]
            .iter()
            .all(|line| line.contains(", one of 3 permits")),
        "{text}"
    );
    for holder in &holders {
        assert!(
            text.contains(&format!("held by leasehold (pid {} on ", holder.pid())),
            "{text}"
        );
    }
    let status = sandbox.run(&["status", "--json", "workers"]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["permits"], json!({"total": 3, "held": 2}));
    assert_eq!(status["holders"][1]["mode"], "permit");
    assert_eq!(status["holders"][1]["permits"], 3);
    let free = sandbox.run(&["status", "--json", "other"]);
    let free: Value = serde_json::from_str(&free.stdout).unwrap();
    assert!(free["permits"].is_null());
}

#[test]
fn other_number_of_permits_is_64_at_once() {
    let sandbox = Sandbox::new();
    let _holder = hold(&sandbox, "2", "one");
    for options in [&["-n"][..], &[]] {
        let args = [
            &["run"],
            options,
            &["--permits", "3", "workers", "touch", "ran"],
        ]
        .concat();
        sandbox
            .run(&args)
            .fails(64, &["workers", "in use with 2 permits, not 3"]);
    }
    assert!(!sandbox.path("ran").exists());
    let alone = sandbox.run(&["run", "-n", "workers", "true"]);
    alone.fails(75, &["one of 2 permits"]);
    sandbox
        .run(&["run", "-n", "-s", "workers", "true"])
        .fails(75, &[]);
}

#[test]
fn killed_wrapper_keeps_permit_until_command_ends() {
    let sandbox = Sandbox::new();
    let stubborn = "trap '' TERM; echo $$ > held; while :; do sleep 0.02; done";
    let args = [
        "run",
        "--grace",
        "1s",
        "--permits",
        "1",
        "workers",
        "--",
        "sh",
        "-c",
        stubborn,
    ];
    let run = sandbox.start(&args);
    let command = sandbox.pid_in("held");
    run.signal(Signal::SIGKILL);
    let next = "kill -0 $(cat held) 2>/dev/null && echo overlap";
    let args = [
        "run",
        "-w",
        "25s",
        "--permits",
        "1",
        "workers",
        "--",
        "sh",
        "-c",
        next,
    ];
    let next = sandbox.run(&args);
    assert_eq!((next.code(), &*next.stdout), (1, ""), "{next:?}");
    until_gone(command);
}
