//! `ls`, `waiters` and `break` on files, and their bad input.

use std::time::{Duration, UNIX_EPOCH};

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::until;
use serde_json::Value;

use crate::support::harness::{Running, Sandbox};

/// Holds `lock` until the file `go` is there.
fn hold(sandbox: &Sandbox, lock: &str) -> Running {
    let script =
        format!("echo $LEASEHOLD_FENCE > fence-{lock}; while [ ! -e go ]; do sleep 0.02; done");
    let holder = sandbox.start(&["run", lock, "--", "sh", "-c", &script]);
    sandbox.line_in(&format!("fence-{lock}"));
    holder
}

fn let_go(sandbox: &Sandbox) {
    std::fs::write(sandbox.path("go"), "").unwrap();
}

#[test]
fn status_shows_when_the_lock_was_taken() {
    let sandbox = Sandbox::new();
    let first = hold(&sandbox, "x");
    let script = "echo > second; while [ ! -e done ]; do sleep 0.02; done";
    let waiter = sandbox.start(&["run", "x", "--", "sh", "-c", script]);
    let started = SystemClock.wall();
    until("the waiter was started in an earlier second", || {
        SystemClock.wall().distance(started) > Duration::from_secs(2)
    });
    let_go(&sandbox);
    assert_eq!(first.wait().code(), 0);
    sandbox.line_in("second");
    let status = sandbox.run(&["status", "x", "--json"]).stdout;
    let status: Value = serde_json::from_str(&status).unwrap();
    let since = status["holders"][0]["since"].as_str().unwrap();
    let since = humantime::parse_rfc3339(since).unwrap();
    let started = UNIX_EPOCH + Duration::from_micros(started.as_micros());
    assert!(since > started, "it waited first: {status}");
    std::fs::write(sandbox.path("done"), "").unwrap();
    assert_eq!(waiter.wait().code(), 0);
}

#[test]
fn ls_shows_the_locks_that_match_by_name() {
    let sandbox = Sandbox::new();
    let none = sandbox.run(&["ls"]);
    assert_eq!(none.code(), 0, "{none:?}");
    assert_eq!(none.stdout, "no lock is held whose name matches \"*\"\n");
    let holders = ["b2", "a1", "b1"].map(|lock| hold(&sandbox, lock));
    let listed = sandbox.run(&["ls"]);
    let names: Vec<&str> = listed
        .stdout
        .lines()
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(names, ["LOCK", "a1", "b1", "b2"], "{listed:?}");
    let fence = sandbox.line_in("fence-a1");
    assert!(
        listed.stdout.contains(&format!("  {fence}  ")),
        "{listed:?}"
    );

    let some = sandbox.run(&["ls", "--json", "--limit", "1", "b*"]);
    let some: Value = serde_json::from_str(&some.stdout).unwrap();
    assert_eq!(some["version"], 1);
    assert_eq!((&some["more"], &some["members"]), (&true.into(), &1.into()));
    assert_eq!(some["locks"].as_array().unwrap().len(), 1);
    let lock = &some["locks"][0];
    assert_eq!(lock["lock"], "b1");
    assert_eq!(
        (&lock["held"], &lock["agreed"]),
        (&true.into(), &true.into())
    );
    assert_eq!(lock["holders"][0]["pid"], holders[2].pid());
    assert_eq!(lock["holders"][0]["members"], 1);
    let text = sandbox.run(&["ls", "--limit", "1", "b?"]);
    assert!(
        text.stdout
            .ends_with("\nmore locks match; --limit 1 leaves them out\n"),
        "{text:?}"
    );
    let_go(&sandbox);
    for holder in holders {
        assert_eq!(holder.wait().code(), 0);
    }
}

#[test]
fn file_lock_is_not_broken_but_names_holder() {
    let sandbox = Sandbox::new();
    let holder = hold(&sandbox, "x");
    let fence = sandbox.line_in("fence-x");
    let named = format!("(pid {} on ", holder.pid());
    let without = sandbox.run(&["break", "x"]);
    without.fails(64, &["end the process that holds it", &named]);
    assert!(!without.stderr.contains("--fence"), "{without:?}");
    for now in [&[][..], &["--now"]] {
        let args = [&["break", "x", "--fence", &fence][..], now].concat();
        sandbox
            .run(&args)
            .fails(64, &["end the process that holds it", &named]);
    }
    assert!(!sandbox.is_free("x"), "it is held as before");
    let_go(&sandbox);
    assert_eq!(holder.wait().code(), 0, "the command was not ended");
}
