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
    assert_eq!((first.len(), &first[0]["event"]), (3, &json!("acquired")));
    assert_fields(&second[0], json!({"event": "waiting", "lock": "x"}));
    assert_eq!(second[0]["holders"][0]["pid"], pid);
    let acquired = &second[second.len() - 3];
    assert_eq!(acquired["event"], "acquired");
    assert!(acquired["fence"].as_u64() > first[0]["fence"].as_u64());
}

#[test]
fn every_event_has_version_and_time() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&sh("run --json x", "exit 3"));
    let events = ended.events();
    let names: Vec<_> = events.iter().map(|event| &event["event"]).collect();
    assert_eq!(names, ["acquired", "released", "end"]);
    assert_eq!(events[1]["exit_code"], 3);
    assert_eq!(events[2]["exit_code"], 3);
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

#[test]
fn end_of_a_wait_is_reported_with_times() {
    let sandbox = Sandbox::new();
    let first = sandbox.hold("x", "pid");
    let second = sandbox.start(&sh("run -v x", "exit 3"));
    second.says("for lock \"x\", held by ");
    sandbox.finish(first);
    let second = second.wait();
    let words = [
        "waiting for ",
        "acquired lock \"x\" after",
        "released lock \"x\" after",
    ];
    let lines: Vec<_> = second.stderr.lines().collect();
    assert_eq!(lines.len(), words.len(), "{}", second.stderr);
    for (line, words) in lines.iter().zip(words) {
        let rest = line.strip_prefix("leasehold: ").unwrap();
        let (time, text) = rest.split_once(' ').unwrap();
        assert!(humantime::parse_rfc3339(time).is_ok(), "{line}");
        assert!(text.starts_with(words), "{line}");
    }
    assert!(lines[2].ends_with(", exit 3"), "{}", lines[2]);
}

#[test]
fn quiet_busy_run_says_nothing() {
    let sandbox = Sandbox::new();
    let holder = sandbox.hold("x", "pid");
    for options in ["run -q -n x true", "run --quiet -w 400ms x true"] {
        let busy = sandbox.run(options);
        assert_eq!((busy.code(), busy.stderr.as_str()), (75, ""), "{options}");
    }
    let wrong = sandbox.run("run -q --ttl 1ms x true");
    assert_eq!(wrong.code(), 64);
    assert!(wrong.stderr.contains("1ms"), "{}", wrong.stderr);
    sandbox.finish(holder);
}

#[test]
fn verbose_run_reports_lock_and_release() {
    let sandbox = Sandbox::new();
    let plain = sandbox.run("run x true");
    assert_eq!(plain.stderr, "", "nothing is wrong, and nothing waited");
    let said = sandbox.run("run --verbose x true").stderr;
    let lines: Vec<_> = said.lines().collect();
    assert!(lines[0].contains("acquired lock \"x\" after "), "{said}");
    assert!(lines[1].contains("released lock \"x\" after "), "{said}");
    let both = sandbox.run("run -q -v x true");
    assert_eq!(both.code(), 64);
}
