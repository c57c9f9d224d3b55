//! Several locks as one, on files.

use std::fs;

use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::harness::{Running, Sandbox};
use crate::support::processes::until_gone;

/// Notes its begin, holds the locks until the file `go` is there, and exits with 5.
const UNTIL_GO: &str = "echo $$ > held; while [ ! -e go ]; do sleep 0.02; done; exit 5";

fn hold(sandbox: &Sandbox, names: &[&str]) -> Running {
    let mut args = vec!["run", names[0]];
    args.extend(names[1..].iter().flat_map(|name| ["--also", *name]));
    let holder = sandbox.start(&[&args[..], &["--", "sh", "-c", UNTIL_GO]].concat());
    sandbox.pid_in("held");
    holder
}

#[test]
fn all_locks_are_held_while_the_command_runs() {
    let sandbox = Sandbox::new();
    let holder = hold(&sandbox, &["b", "c", "a", "b"]);
    for name in ["a", "b", "c"] {
        let busy = sandbox.run(&["run", "-n", name, "true"]);
        busy.fails(
            75,
            &[&format!(
                "lock {name:?} is held by leasehold (pid {}",
                holder.pid()
            )],
        );
    }
    let busy = sandbox.run(&[
        "run", "-n", "0", "--also", "c", "--also", "d", "touch", "ran",
    ]);
    busy.fails(75, &[r#"lock "c" is held by leasehold (pid "#]);
    assert!(sandbox.is_free("0") && sandbox.is_free("d"));
    fs::write(sandbox.path("go"), "").unwrap();
    assert_eq!(holder.wait().code(), 5);
    for name in ["a", "b", "c"] {
        assert!(sandbox.is_free(name), "{name}");
    }
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn the_command_is_told_the_fence_of_each() {
    let sandbox = Sandbox::new();
    let script = "echo \"$LEASEHOLD_NAME $LEASEHOLD_FENCE\"; echo \"$LEASEHOLD_FENCES\"";
    let odd = "it's \"odd\"";
    let ended = sandbox.run(&[
        "run", "b", "--also", odd, "--also", "a", "--", "sh", "-c", script,
    ]);
    let (own, all) = ended.stdout.split_once('\n').unwrap();
    let all: Value = serde_json::from_str(all).unwrap();
    let names: Vec<&String> = all.as_object().unwrap().keys().collect();
    assert_eq!(names, ["a", "b", odd]);
    assert_eq!(own, format!("b {}", all["b"]));
    assert!(
        all.as_object().unwrap().values().all(Value::is_u64),
        "{all}"
    );
    let single = sandbox.run(&["run", "x", "--", "sh", "-c", script]);
    let (own, all) = single.stdout.trim_end().split_once('\n').unwrap();
    assert_eq!(
        format!("x {}", all.replace("{\"x\":", "").replace('}', "")),
        own
    );
}

#[test]
fn waiter_names_its_lock_and_holds_earlier_ones() {
    let sandbox = Sandbox::new();
    let holder = hold(&sandbox, &["b"]);
    let args = ["run", "--json", "c", "--also", "b", "--also", "a", "true"];
    let waiting = sandbox.start(&args);
    waiting.says(r#""event":"waiting""#);
    until("a is held meanwhile", || !sandbox.is_free("a"));
    assert!(sandbox.is_free("c"));
    let text = sandbox.start(&["run", "d", "--also", "b", "true"]);
    text.says(&format!(
        r#"waiting for lock "b", held by leasehold (pid {}"#,
        holder.pid()
    ));
    fs::write(sandbox.path("go"), "").unwrap();
    assert_eq!((waiting.pid() > 0, text.wait().code()), (true, 0));
    let ended = waiting.wait();
    assert_eq!(ended.code(), 0, "{ended:?}");
    let events: Vec<Value> = ended
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events[0]["lock"], "b", "the one that is missing");
    assert_eq!(events[0]["holders"][0]["pid"], holder.pid());
    let acquired = events.last().unwrap();
    assert_eq!(
        (&acquired["event"], &acquired["lock"]),
        (&json!("acquired"), &json!("c"))
    );
    assert_eq!(acquired["fence"], acquired["fences"]["c"]);
    assert_eq!(acquired["fences"].as_object().unwrap().len(), 3);
}

/// Starts `runs` runs. Each takes three locks in one of several orders, and adds to a count.
pub(crate) fn opposite_orders(sandbox: &Sandbox, runs: usize, start: impl Fn(&[&str]) -> Running) {
    fs::write(sandbox.path("count"), "0\n").unwrap();
    let add = "n=$(cat count); sleep 0.01; echo $((n + 1)) > count";
    let orders = [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]];
    let orders = orders.iter().cycle().take(runs);
    let started = orders.map(|[name, one, two]| {
        let args = [
            "run", name, "--also", one, "--also", two, "--", "sh", "-c", add,
        ];
        start(&args)
    });
    let started: Vec<Running> = started.collect();
    for run in started {
        assert_eq!(run.wait().code(), 0);
    }
    assert_eq!(sandbox.line_in("count"), runs.to_string());
}

#[test]
fn only_the_blocking_lock_is_named() {
    let sandbox = Sandbox::new();
    let reader = "echo $$ > reading; while [ ! -e go ]; do sleep 0.02; done";
    let reader = sandbox.start(&["run", "-s", "a", "--", "sh", "-c", reader]);
    sandbox.pid_in("reading");
    let holder = hold(&sandbox, &["b"]);
    let busy = sandbox.run(&["run", "-n", "-s", "a", "--also", "b", "true"]);
    busy.fails(
        75,
        &[&format!(
            "lock \"b\" is held by leasehold (pid {}",
            holder.pid()
        )],
    );
    fs::write(sandbox.path("go"), "").unwrap();
    assert_eq!((reader.wait().code(), holder.wait().code()), (0, 5));
    let free = sandbox.run(&["run", "-n", "-s", "a", "--also", "b", "true"]);
    assert_eq!(free.code(), 0, "{free:?}");
}

#[test]
fn one_that_is_held_around_is_named() {
    let sandbox = Sandbox::new();
    let script = r#""$LEASEHOLD" run z --also outer --also a -- touch ran; echo code-$?"#;
    let args = ["run", "first", "--also", "outer", "--", "sh", "-c", script];
    let ended = sandbox.run(&args);
    ended.fails(
        0,
        &[r#"lock "outer" is held by an outer run"#, "would never end"],
    );
    assert_eq!(ended.stdout, "code-64\n");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn killed_wrapper_releases_after_the_command_ended() {
    let sandbox = Sandbox::new();
    let stubborn = "trap '' TERM; echo $$ > held; while :; do sleep 0.02; done";
    let args = [
        "run", "--grace", "1s", "a", "--also", "b", "--", "sh", "-c", stubborn,
    ];
    let run = sandbox.start(&args);
    let command = sandbox.pid_in("held");
    run.signal(Signal::SIGKILL);
    let next = "kill -0 $(cat held) 2>/dev/null && echo overlap";
    let waiting =
        ["a", "b"].map(|name| sandbox.start(&["run", "-w", "25s", name, "--", "sh", "-c", next]));
    for next in waiting.map(Running::wait) {
        assert_eq!((next.code(), &*next.stdout), (1, ""), "{next:?}");
    }
    until_gone(command);
}

#[test]
fn the_longest_hold_is_that_of_all() {
    let sandbox = Sandbox::new();
    let args = [
        "run",
        "--max-hold",
        "3s",
        "a",
        "--also",
        "b",
        "sleep",
        "1000",
    ];
    sandbox
        .run(&args)
        .fails(76, &["lost lock \"a\": --max-hold reached"]);
    assert!(sandbox.is_free("a") && sandbox.is_free("b"));
}
