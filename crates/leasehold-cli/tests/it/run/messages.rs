use serde_json::json;

use crate::support::harness::Sandbox;
use crate::support::program::{assert_fields, sh};

#[test]
fn every_line_is_an_event_object() {
    let sandbox = Sandbox::new();
    let first = sandbox.hold("--json x", "pid");
    let busy = sandbox.run("run --json -n x true");
    assert_eq!(busy.code(), 75);
    assert_fields(
        &busy.events()[0],
        json!({"event": "error", "exit_code": 75}),
    );
    let second = sandbox.start("run --json x echo mine");
    second.says(r#""event":"waiting""#);
    let pid = first.pid();
    sandbox.let_go();
    let (first, second) = (first.wait(), second.wait());
    assert_eq!(second.stdout, "mine\n", "stdout belongs to the command");
    let (first, second) = (first.events(), second.events());
    assert_eq!((first.len(), &first[0]["event"]), (2, &json!("acquired")));
    assert_fields(&second[0], json!({"event": "waiting", "lock": "x"}));
    assert_eq!(second[0]["holders"][0]["pid"], pid);
    let acquired = &second[second.len() - 2];
    assert_eq!(acquired["event"], "acquired");
    assert!(acquired["fence"].as_u64() > first[0]["fence"].as_u64());
}

#[test]
fn every_event_has_version_and_time() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&sh("run --json x", "exit 3"));
    let events = ended.events();
    let names: Vec<_> = events.iter().map(|event| &event["event"]).collect();
    assert_eq!(names, ["acquired", "end"]);
    assert_eq!(events[1]["exit_code"], 3);
    for event in &events {
        assert_eq!(event["version"], 1, "{event}");
        let time = event["time"].as_str().unwrap();
        assert!(
            time.ends_with('Z') && humantime::parse_rfc3339(time).is_ok(),
            "{event}"
        );
    }
    let refused = sandbox.run("run --json --ttl 1ms x true").events();
    assert_fields(
        &refused[0],
        json!({"event": "error", "exit_code": 64, "version": 1}),
    );
    let status = sandbox.run("status --json x").json();
    assert_eq!(status["version"], 1);
    assert!(status["time"].is_string(), "{status}");
}

#[test]
fn a_loss_is_an_object_too() {
    let sandbox = Sandbox::new();
    let lost = sandbox.run("run --json --max-hold 3s x sleep 1000");
    assert_eq!(lost.code(), 76);
    let lost = &lost.events()[1];
    assert_eq!(lost["event"], "lost");
    let reason = lost["reason"].as_str().unwrap();
    assert!(reason.contains("--max-hold reached"), "{lost}");
}

#[test]
fn the_status_names_every_holder() {
    let sandbox = Sandbox::new();
    let status = || sandbox.run("status --json x").json();
    assert_fields(&status(), json!({"held": false, "holders": []}));
    let holder = sandbox.hold("x", "pid");
    let waiter = sandbox.start("run --json x true");
    waiter.says(r#""position":null"#);
    let text = sandbox.run("status x").stdout;
    assert_eq!(text.lines().count(), 1, "files have no queue to show");
    let begins = format!("x: held by leasehold (pid {} on ", holder.pid());
    assert!(text.starts_with(&begins), "{text}");
    let status = status();
    assert_fields(&status, json!({"held": true, "waiters": []}));
    let known = json!({"pid": holder.pid(), "program": "leasehold", "mode": "exclusive"});
    assert_fields(&status["holders"][0], known);
}
