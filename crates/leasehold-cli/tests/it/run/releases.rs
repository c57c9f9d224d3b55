//! A run says that its locks are released only if the store has answered so.

use std::time::SystemTime;

use leasehold::clock::{Clock as _, SystemClock};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::harness::Sandbox;
use crate::support::program::{Ended, sh};
use crate::support::stores::{TestStore, on_stores};

/// The names of the events, in their order.
fn names(ended: &Ended) -> Vec<String> {
    let events = ended.events();
    let names = events.iter().map(|event| event["event"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// Asserts that the run says until when the lock may stay held, and why.
#[track_caller]
fn assert_still_held(ended: &Ended) -> String {
    let events = ended.events();
    let said: Vec<&Value> = events
        .iter()
        .filter(|event| ["released", "still_held"].contains(&event["event"].as_str().unwrap()))
        .collect();
    let [still_held] = said[..] else {
        panic!("{ended:?}");
    };
    assert_eq!(still_held["lock"], "x");
    let until = still_held["until"].as_str().unwrap();
    let until = humantime::parse_rfc3339(until).unwrap();
    assert!(until > SystemTime::from(SystemClock.wall()), "{ended:?}");
    still_held["reason"].as_str().unwrap().to_owned()
}

#[test]
fn redis_release_without_answer_is_not_reported() {
    let (sandbox, server) = Sandbox::on_redis();
    let job = format!("kill -STOP {}; exit 3", server.pid());
    let ended = sandbox.run(&sh("run --json --ttl 60s x", &job));
    server.thaw();
    assert_eq!(ended.code(), 3);
    assert_ne!(assert_still_held(&ended), "");
}

on_stores!(waiter_says_what_remains: redis postgres);

/// The lock may be granted to the waiter once the server goes on.
fn waiter_says_what_remains(sandbox: &TestStore) {
    sandbox
        .run("acquire --ttl 60s --handle-file handle x")
        .succeeds();
    let run = sandbox.start("run --json --ttl 60s x true");
    run.says("\"event\":\"waiting\"");
    sandbox.freeze();
    run.signal(Signal::SIGTERM);
    let ended = run.wait();
    sandbox.thaw();
    assert_eq!(ended.code(), 143);
    assert_eq!(assert_still_held(&ended), "the store does not answer");
}

#[test]
fn attempt_that_was_not_sent_leaves_nothing() {
    let sandbox = Sandbox::new();
    for url in [
        "redis://127.0.0.1:1",
        "postgres://u@127.0.0.1:1/x",
        "etcd://127.0.0.1:1",
        "zk://127.0.0.1:1/locks",
    ] {
        for wait in ["-n", "-w 1s"] {
            let ended = sandbox.run(&format!("run --json --store {url} {wait} x true"));
            assert_eq!(ended.code(), 69, "{url}");
            assert!(!names(&ended).contains(&"still_held".into()), "{url}");
        }
    }
}

#[test]
fn redis_stay_cut_short_is_not_reported_released() {
    let (sandbox, _server) = Sandbox::on_redis();
    let run = sandbox.start(&sh("run --json --min-hold 1h x", "exit 3"));
    run.says("--min-hold keeps the lock for");
    run.signal(Signal::SIGTERM);
    let ended = run.wait();
    assert_eq!(ended.code(), 3);
    assert_eq!(
        assert_still_held(&ended),
        "a signal ended the wait for --min-hold"
    );
}

#[test]
fn stay_cut_short_releases_a_file_lock() {
    let sandbox = Sandbox::new();
    let run = sandbox.start(&sh("run --json --min-hold 1h x", "exit 3"));
    run.says("--min-hold keeps the lock for");
    run.signal(Signal::SIGTERM);
    let ended = run.wait();
    assert_eq!(names(&ended), ["acquired", "notice", "released", "end"]);
}

#[test]
fn nested_run_does_not_release_the_outer_lock() {
    let sandbox = Sandbox::new();
    let inner = r#""$LEASEHOLD" run --json --nested x true 2> inner"#;
    sandbox.run(&sh("run x", inner)).succeeds();
    let inner = sandbox.lines_in("inner");
    assert!(inner[0].contains(r#""event":"nested""#), "{inner:?}");
    assert!(!inner.concat().contains("released"), "{inner:?}");
}

#[test]
fn release_is_reported_after_result_and_resignation() {
    let sandbox = Sandbox::new();
    let once = sandbox.run(&sh("once --json key", "true"));
    assert_eq!(names(&once), ["acquired", "released", "once", "end"]);
    let elect = sandbox.run(&sh("elect --json x", "true"));
    assert_eq!(names(&elect), ["acquired", "leads", "released", "end"]);
}

#[test]
fn redis_candidate_without_answer_reports_no_release() {
    let (sandbox, server) = Sandbox::on_redis();
    let job = format!("kill -STOP {}; exit 3", server.pid());
    let ended = sandbox.run(&sh("elect --json --ttl 60s x", &job));
    server.thaw();
    assert_eq!(ended.code(), 3);
    assert_ne!(assert_still_held(&ended), "");
}
