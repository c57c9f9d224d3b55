//! What `bench` says of files, and what it refuses. Figures are not judged: machines differ.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::harness::Sandbox;
use crate::support::program::{Ended, assert_fields};
use crate::support::pty::OnTerminal;

/// The shortest duration possible.
pub(crate) const SHORT: &str = "bench --duration 500ms";

#[track_caller]
pub(crate) fn figures(ended: &Ended) -> Value {
    let figures = ended.json();
    assert_eq!(figures["version"], 1);
    let spans = [
        "/one_at_a_time/acquire",
        "/one_at_a_time/release",
        "/in_flight/cycle",
        "/hand_over",
    ];
    for span in spans {
        is_timed(figures.pointer(span).unwrap());
    }
    for rate in [
        "/one_at_a_time/cycles_per_s",
        "/in_flight/cycles_per_s",
        "/estimate/locks_per_s",
    ] {
        let rate = figures.pointer(rate).unwrap();
        assert!(rate.as_f64().unwrap() > 0.0, "{figures}");
    }
    is_bound(&figures["in_flight"]["limited_by"]);
    figures
}

#[track_caller]
pub(crate) fn is_timed(timed: &Value) {
    assert!(timed["samples"].as_u64().unwrap() > 0, "{timed}");
    let [p50, p99] = ["p50_us", "p99_us"].map(|field| timed[field].as_f64().unwrap());
    assert!(0.0 < p50 && p50 <= p99, "{timed}");
}

#[track_caller]
pub(crate) fn is_bound(bound: &Value) {
    let words = ["client_cpu", "machine_cpu", "in_flight", "store"];
    assert!(words.iter().any(|word| bound == word), "{bound}");
}

fn lock_files(sandbox: &Sandbox) -> Vec<String> {
    let entries = fs::read_dir(sandbox.path("locks")).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains("bench")).collect()
}

#[test]
fn files_are_measured_without_inapplicable_parts() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(SHORT);
    assert_eq!((ended.code(), &*ended.stderr), (0, ""), "{ended:?}");
    for part in [
        "MEASURED ",
        "\nacquire, one at a time ",
        "\nacquire and release, 64 in flight ",
        "\nhand-over ",
        "\nround trip: not measured",
        "\nrenewal: not measured",
        "\nSeen from here, this folder serves about ",
    ] {
        assert!(ended.stdout.contains(part), "no {part:?} in {ended:?}");
    }
    assert_eq!(lock_files(&sandbox), [""; 0]);
}

#[test]
fn programs_get_an_object() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run("bench --duration 500ms --json --in-flight 1");
    let figures = figures(&ended);
    let folder = sandbox.path("locks").display().to_string();
    assert!(figures["store"].as_str().unwrap().contains(&folder));
    assert_fields(&figures, json!({"duration_ms": 500, "ttl_ms": 30_000}));
    assert_fields(&figures, json!({"members": [], "renewals": null}));
    assert_eq!(figures["in_flight"]["in_flight"], 1);
    assert!(figures["estimate"]["locks_renewed"].is_null());
}

#[test]
fn others_locks_stay_as_they_are() {
    let sandbox = Sandbox::new();
    let holder = sandbox.hold("mine", "held");
    let before = fs::read_dir(sandbox.path("locks")).unwrap().count();
    sandbox.run(SHORT).succeeds();
    assert!(!sandbox.is_free("mine"));
    let after = fs::read_dir(sandbox.path("locks")).unwrap().count();
    assert_eq!(after, before);
    drop(holder);
}

#[test]
fn an_interrupt_ends_it_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let bench = sandbox.start("bench --duration 1m");
    leasehold_testkit::servers::until("it has begun", || !lock_files(&sandbox).is_empty());
    bench.signal(Signal::SIGINT);
    let ended = bench.wait();
    assert_eq!((ended.code(), &*ended.stdout), (130, ""), "{ended:?}");
    assert_eq!(lock_files(&sandbox), [""; 0]);
}

#[test]
fn progress_is_shown_on_a_terminal_and_wiped() {
    let sandbox = Sandbox::new();
    let mut terminal = OnTerminal::leasehold(&sandbox, SHORT);
    terminal.shows("measuring, 2 of 5: one lock at a time");
    terminal.shows("measuring, 4 of 5: hand-over");
    terminal.shows("\r\x1b[KMEASURED ");
    terminal.shows("this folder serves about");
    assert_eq!(terminal.exit_code(), 0);
}
