//! `ls`, `waiters` and `break` on files, and their bad input.

use std::time::{Duration, UNIX_EPOCH};

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::until;
use serde_json::json;

use crate::support::harness::Sandbox;
use crate::support::program::{assert_fields, sh};

#[test]
fn status_shows_when_the_lock_was_taken() {
    let sandbox = Sandbox::new();
    let first = sandbox.hold("x", "x");
    sandbox.gate("done");
    let waiter = sandbox.start(&sh("run x", "echo > second; read line < done"));
    let started = SystemClock.wall();
    until("the waiter was started in an earlier second", || {
        SystemClock.wall().distance(started) > Duration::from_secs(2)
    });
    sandbox.finish(first);
    sandbox.line_in("second");
    let status = sandbox.run("status x --json").json();
    let since = status["holders"][0]["since"].as_str().unwrap();
    let since = humantime::parse_rfc3339(since).unwrap();
    let started = UNIX_EPOCH + Duration::from_micros(started.as_micros());
    assert!(since > started, "it waited first: {status}");
    sandbox.open_gate("done");
    waiter.wait().succeeds();
}

#[test]
fn names_that_fake_other_text_are_refused() {
    let sandbox = Sandbox::new();
    for name in ["\u{202e}desrever", "a\u{2066}b", "zero\u{200b}width"] {
        for args in [&["run", name, "true"][..], &["status", name], &["ls", name]] {
            let refused = sandbox.run(args);
            refused.fails(64, &["contains the format character '\\u{2"]);
        }
    }
}

#[test]
fn ls_shows_the_locks_that_match_by_name() {
    let sandbox = Sandbox::new();
    let none = "no lock is held whose name matches \"*\"\n";
    assert_eq!(sandbox.run("ls").succeeds().stdout, none);
    let holders = ["b2", "a1", "b1"].map(|lock| sandbox.hold(lock, lock));
    let listed = sandbox.run("ls").stdout;
    let rows = listed.lines().map(|line| line.split_whitespace().next());
    let names: Vec<&str> = rows.flatten().collect();
    assert_eq!(names, ["LOCK", "a1", "b1", "b2"], "{listed}");
    let fence = format!("  {}  ", sandbox.fence("a1"));
    assert!(listed.contains(&fence), "{listed}");

    let some = sandbox.run("ls --json --limit 1 b*").json();
    assert_fields(&some, json!({"version": 1, "more": true, "members": 1}));
    assert_eq!(some["locks"].as_array().unwrap().len(), 1);
    let lock = &some["locks"][0];
    assert_fields(lock, json!({"lock": "b1", "held": true, "agreed": true}));
    let holder = json!({"pid": holders[2].pid(), "members": 1});
    assert_fields(&lock["holders"][0], holder);
    let text = sandbox.run("ls --limit 1 b?").stdout;
    let more = "\nmore locks match; --limit 1 leaves them out\n";
    assert!(text.ends_with(more), "{text}");
    sandbox.let_go();
    for holder in holders {
        holder.wait().succeeds();
    }
}

#[test]
fn file_lock_is_not_broken_but_names_holder() {
    let sandbox = Sandbox::new();
    let holder = sandbox.hold("x", "x");
    let fence = sandbox.fence("x");
    let named = format!("(pid {} on ", holder.pid());
    let without = sandbox.run("break x");
    without.fails(64, &["end the process that holds it", &named]);
    assert!(!without.stderr.contains("--fence"), "{without:?}");
    for now in ["", "--now"] {
        let refused = sandbox.run(&format!("break x --fence {fence} {now}"));
        refused.fails(64, &["end the process that holds it", &named]);
    }
    assert!(!sandbox.is_free("x"), "it is held as before");
    sandbox.finish(holder);
}

#[test]
fn check_tells_own_free_and_foreign_apart() {
    let sandbox = Sandbox::new();
    let code = |args: &str| sandbox.run(args).code();
    assert_eq!(code("status --check x"), 1);
    let inside = sandbox.run(&sh("run x", "$LEASEHOLD status --check x; echo $?"));
    assert!(inside.stdout.ends_with("\n0\n"), "{inside:?}");
    let other = sandbox.run(&sh("run y", "$LEASEHOLD status -q --check x; echo $?"));
    assert_eq!(other.stdout, "1\n", "the run has another lock");
    let holder = sandbox.hold("x", "x");
    let shown = sandbox.run("status --check x");
    assert_eq!(shown.code(), 3);
    assert!(shown.stdout.contains("held by"), "{shown:?}");
    let silent = sandbox.run("status -q --check x");
    assert_eq!((silent.code(), &*silent.stdout), (3, ""));
    assert_eq!(code("status x"), 0, "without --check, held is no failure");
    sandbox.finish(holder);
}

#[test]
fn watch_prints_each_change_once() {
    let sandbox = Sandbox::new();
    let watch = sandbox.start("status --watch=100ms x");
    watch.prints("x: free\n");
    let holder = sandbox.hold("x", "x");
    watch.prints("x: held by");
    sandbox.finish(holder);
    until("it is free again", || {
        watch.stdout().matches("x: free\n").count() == 2
    });
    let shown = watch.stdout();
    assert_eq!(shown.lines().count(), 3, "{shown}");
    sandbox
        .run("status --watch=1ms x")
        .fails(64, &["the shortest pause is 100ms"]);
}

#[test]
fn gc_removes_files_that_nobody_uses() {
    let sandbox = Sandbox::new();
    for lock in ["old", "young"] {
        sandbox.run(&format!("run {lock} true")).succeeds();
    }
    let old = std::fs::File::options()
        .write(true)
        .open(sandbox.path("locks/old.lock"))
        .unwrap();
    // Its fence is of now, so the file is needed until the clock has passed that by the span.
    old.set_modified(UNIX_EPOCH).unwrap();
    let kept = sandbox.run("gc --unused-for 2h --json").json();
    assert_fields(&kept, json!({"removed": 0, "kept": 2, "dry_run": false}));
    sandbox
        .run("gc --unused-for 1m")
        .fails(64, &["minimum is 1h"]);
    let text = sandbox.run("gc --dry-run").stdout;
    assert_eq!(text, "would remove 0 lock files, kept 2\n");
    let servers = sandbox.run("gc --store redis://127.0.0.1:1");
    servers.fails(64, &["gc is for lock files"]);
}
