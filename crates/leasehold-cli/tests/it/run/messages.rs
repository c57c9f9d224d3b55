use serde_json::Value;

use crate::support::harness::{Ended, Sandbox};

fn events(ended: &Ended) -> Vec<Value> {
    ended
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

#[test]
fn every_line_is_an_event_object() {
    let sandbox = Sandbox::new();
    let script = "echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done";
    let first = sandbox.start(&["run", "--json", "x", "--", "sh", "-c", script]);
    sandbox.pid_in("pid");
    let busy = sandbox.run(&["run", "--json", "-n", "x", "true"]);
    assert_eq!(busy.code(), 75);
    let busy = &events(&busy)[0];
    assert_eq!(
        (&busy["event"], &busy["exit_code"]),
        (&"error".into(), &75.into())
    );
    let second = sandbox.start(&["run", "--json", "x", "echo", "mine"]);
    second.says(r#""event":"waiting""#);
    let pid = first.pid();
    std::fs::write(sandbox.path("go"), "").unwrap();
    let first = first.wait();
    let second = second.wait();
    assert_eq!(second.stdout, "mine\n", "stdout belongs to the command");
    let (first, second) = (events(&first), events(&second));
    assert_eq!(first.len(), 1);
    assert_eq!(first[0]["event"], "acquired");
    assert_eq!(second[0]["event"], "waiting");
    assert_eq!(second[0]["lock"], "x");
    assert_eq!(second[0]["holders"][0]["pid"], pid);
    let acquired = second.last().unwrap();
    assert_eq!(acquired["event"], "acquired");
    assert!(acquired["fence"].as_u64() > first[0]["fence"].as_u64());
}

#[test]
fn a_loss_is_an_object_too() {
    let sandbox = Sandbox::new();
    let lost = sandbox.run(&["run", "--json", "--max-hold", "3s", "x", "sleep", "1000"]);
    assert_eq!(lost.code(), 76);
    let lost = events(&lost);
    assert_eq!(lost[1]["event"], "lost");
    assert!(
        lost[1]["reason"]
            .as_str()
            .unwrap()
            .contains("--max-hold reached")
    );
}

#[test]
fn the_status_names_every_holder() {
    let sandbox = Sandbox::new();
    let free = sandbox.run(&["status", "--json", "x"]);
    let free: Value = serde_json::from_str(&free.stdout).unwrap();
    assert_eq!(
        (&free["held"], &free["holders"]),
        (&false.into(), &Value::Array(vec![]))
    );
    let script = "echo $$ > pid; sleep 1000";
    let holder = sandbox.start(&["run", "x", "--", "sh", "-c", script]);
    sandbox.pid_in("pid");
    let text = sandbox.run(&["status", "x"]);
    assert_eq!((text.code(), text.stdout.lines().count()), (0, 1));
    let waiter = sandbox.start(&["run", "--json", "x", "true"]);
    waiter.says(r#""place":null"#);
    let text = sandbox.run(&["status", "x"]);
    assert_eq!(
        text.stdout.lines().count(),
        1,
        "files have no queue to show"
    );
    let begins = format!("x: held by leasehold (pid {} on ", holder.pid());
    assert!(text.stdout.starts_with(&begins), "{text:?}");
    let json = sandbox.run(&["status", "--json", "x"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["held"], true);
    assert_eq!(json["waiters"], Value::Array(vec![]));
    assert_eq!(json["holders"][0]["pid"], holder.pid());
    assert_eq!(json["holders"][0]["program"], "leasehold");
    assert_eq!(json["holders"][0]["mode"], "exclusive");
}
