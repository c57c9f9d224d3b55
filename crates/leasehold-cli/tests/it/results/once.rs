//! Commands that are run once, on each store, and on files of this machine.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;

use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::harness::Sandbox;
use crate::support::processes::{guardian_of, until_gone, until_stopped};
use crate::support::program::{Ended, assert_fields, sh};
use crate::support::stores::{TestStore, on_stores};

/// Notes that it ran, writes to both streams, and ends with the code in the file `code`, if any.
const WORK: &str = r#"
echo "$LEASEHOLD_FENCE" >> ran
echo "done under $LEASEHOLD_FENCE"
echo "a remark" >&2
exit "$(cat code 2>/dev/null || echo 0)""#;

/// The same, once it may pass the gate.
const GATED: &str = r#"
echo $$ > pid
read line < gate
echo "$LEASEHOLD_FENCE" >> ran
echo "done under $LEASEHOLD_FENCE""#;

/// Once it may pass the gate: notes that it ran, and says so.
const NUMBERED: &str = r#"
echo $$ > "pid-$1"
read line < "gate-$1"
echo "$LEASEHOLD_FENCE" >> ran
echo "done under $LEASEHOLD_FENCE""#;

/// The command of the attempt `number`, the same request for all.
pub(crate) fn attempt(number: &str) -> Vec<String> {
    let script = NUMBERED.replace("$1", number);
    sh("once --ttl 3s --payload EUR-12 pay/17", &script)
}

fn call(sandbox: &Sandbox, options: &str) -> Ended {
    sandbox.run(&sh(&format!("once {options} pay/17"), WORK))
}

/// Asserts that all calls in `shown` printed the same result, and that an attempt produced it.
#[track_caller]
pub(crate) fn assert_one_result(sandbox: &Sandbox, shown: &[&Ended]) {
    let ran = sandbox.lines_in("ran");
    for ended in shown {
        assert_eq!(ended.code(), 0, "{ended:?}");
        assert_eq!(ended.stdout, shown[0].stdout);
        let fence = ended.stdout.trim_end().strip_prefix("done under ");
        let fence = fence.unwrap_or_else(|| panic!("{ended:?}"));
        assert!(ran.iter().any(|ran| ran == fence), "{fence} of {ran:?}");
    }
}

#[test]
fn second_call_replays_output_and_code() {
    let sandbox = Sandbox::new();
    let first = call(&sandbox, "");
    let again = call(&sandbox, "");
    assert_one_result(&sandbox, &[&first, &again]);
    assert_eq!(sandbox.lines_in("ran").len(), 1);
    for ended in [&first, &again] {
        assert_eq!(ended.stderr, "a remark\n");
    }
    assert!(sandbox.is_free("pay/17"));
    let listed = fs::read_dir(sandbox.path("locks")).unwrap().count();
    assert_eq!(listed, 2, "a lock file and its record");
}

on_stores!(result_is_kept_once: redis postgres etcd zookeeper);

/// A restarted server has the result, unless it is a Redis server without a file.
fn result_is_kept_once(sandbox: &mut TestStore) {
    let mut shown = vec![call(sandbox, ""), call(sandbox, "")];
    if !sandbox.store().starts_with("redis") {
        sandbox.kill();
        sandbox.restart();
        shown.push(call(sandbox, ""));
    }
    assert_one_result(sandbox, &shown.iter().collect::<Vec<_>>());
    assert_eq!(sandbox.lines_in("ran").len(), 1);
}

#[test]
fn failure_runs_again_unless_kept() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("code"), "3").unwrap();
    for runs in 1..=2 {
        let failed = call(&sandbox, "");
        failed.fails(3, &["a remark"]);
        assert!(failed.stdout.starts_with("done under "));
        assert_eq!(sandbox.lines_in("ran").len(), runs);
    }
    call(&sandbox, "--failed keep").fails(3, &["a remark"]);
    fs::write(sandbox.path("code"), "0").unwrap();
    let kept = call(&sandbox, "");
    kept.fails(3, &["a remark"]);
    assert_eq!(sandbox.lines_in("ran").len(), 3);
    let killed = sh("once --failed keep x", "kill -9 $$");
    assert_eq!(sandbox.run(&killed).code(), 137);
    assert_eq!(sandbox.run(&killed).code(), 137);
}

#[test]
fn other_command_under_same_key_needs_same_payload() {
    let sandbox = Sandbox::new();
    call(&sandbox, "").fails(0, &[]);
    let other = sandbox.run("once pay/17 -- touch touched");
    other.fails(64, &["pay/17", "another payload"]);
    assert!(!sandbox.path("touched").exists());
    for word in ["one", "two"] {
        let same = sandbox.run(&format!("once --payload EUR-12 y -- echo {word}"));
        assert_eq!(same.stdout, "one\n");
    }
    let other = sandbox.run("once --payload EUR-13 y -- echo two");
    other.fails(64, &["another payload"]);
    let stored = fs::read(sandbox.path("locks/y.lock.record")).unwrap();
    let stored = String::from_utf8_lossy(&stored);
    assert!(!stored.contains("EUR"), "a payload is not kept");
}

#[test]
fn concurrent_call_waits_or_is_busy() {
    let sandbox = Sandbox::new();
    sandbox.gate("gate");
    let call = |options: &str| sandbox.start(&sh(&format!("once {options} pay/17"), GATED));
    let first = call("");
    sandbox.pid_in("pid");
    let busy = ["pay/17", "is held by leasehold (pid "];
    call("-n").wait().fails(75, &busy);
    let busy = ["gave up after 200ms"];
    call("-w 200ms -E 9").wait().fails(9, &busy);
    let waiting = call("-v");
    waiting.says("waiting");
    sandbox.open_gate("gate");
    assert_one_result(&sandbox, &[&first.wait(), &waiting.wait()]);
    assert_eq!(sandbox.lines_in("ran").len(), 1);
}

#[test]
fn call_ended_while_running_is_followed() {
    for (signal, options) in [
        (Signal::SIGKILL, ""),
        (Signal::SIGTERM, ""),
        (Signal::SIGTERM, "--failed keep"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.gate("gate");
        let command = sh(&format!("once {options} pay/17"), GATED);
        let first = sandbox.start(&command);
        let running = sandbox.pid_in("pid");
        first.signal(signal);
        assert_eq!(first.wait().status.signal(), Some(signal as i32));
        until_gone(running);
        assert_eq!(sandbox.lines_in("ran").len(), 0);
        let next = sandbox.start(&command);
        sandbox.open_gate("gate");
        assert_one_result(&sandbox, &[&next.wait(), &sandbox.run(&command)]);
        assert_eq!(sandbox.lines_in("ran").len(), 1);
    }
}

on_stores!(killed_call_is_followed: file redis);

/// Two calls are killed: one while its command runs, and one after its command.
fn killed_call_is_followed(sandbox: &TestStore) {
    for number in ["1", "2", "3", "4"] {
        sandbox.gate(&format!("gate-{number}"));
    }
    let first = sandbox.start(&attempt("1"));
    let command = sandbox.pid_in("pid-1");
    first.signal(Signal::SIGKILL);
    until_gone(command);

    let second = sandbox.start(&attempt("2"));
    let command = sandbox.pid_in("pid-2");
    let guardian = guardian_of(command);
    second.signal(Signal::SIGSTOP);
    until_stopped(second.pid());
    sandbox.open_gate("gate-2");
    until_gone(command);
    until_gone(guardian);
    second.signal(Signal::SIGKILL);

    let third = sandbox.start(&attempt("3"));
    sandbox.open_gate("gate-3");
    let shown = [third.wait(), sandbox.run(&attempt("4"))];
    assert_one_result(sandbox, &[&shown[0], &shown[1]]);
    assert_eq!(sandbox.lines_in("ran").len(), 2, "at least once");
}

#[test]
fn kills_at_any_moment_commit_one_result() {
    // Each call is killed a little later; where exactly that meets it is chance, what must hold is not.
    for round in 0..40 {
        let sandbox = Sandbox::new();
        let command = sh("once pay/17", WORK);
        let first = sandbox.start(&command);
        let steps = [
            "locks",
            "locks/pay%2F17.lock",
            "locks/pay%2F17.lock.record",
            "ran",
        ];
        if let Some(step) = steps.get(round % 5) {
            until(step, || sandbox.path(step).exists());
        }
        // Between two steps lie a few milliseconds: some of these spins end within them.
        for _ in 0..round * 20_000 {
            std::hint::spin_loop();
        }
        first.signal(Signal::SIGKILL);
        drop(first);
        let shown = [(); 2].map(|()| sandbox.run(&command));
        assert_one_result(&sandbox, &[&shown[0], &shown[1]]);
        let ran = sandbox.lines_in("ran").len();
        assert!((1..=2).contains(&ran), "run {ran} times");
    }
}

#[test]
fn what_could_not_be_started_is_not_kept() {
    let sandbox = Sandbox::new();
    let missing = "once --failed keep x -- ./work";
    sandbox.run(missing).fails(127, &["./work"]);
    fs::write(sandbox.path("work"), "#!/bin/sh\necho worked\n").unwrap();
    sandbox.run(missing).fails(126, &["./work"]);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(sandbox.path("work"), mode).unwrap();
    assert_eq!(sandbox.run(missing).stdout, "worked\n");
    // Another command would have been another payload.
    sandbox.run("once y -- ./missing").fails(127, &[]);
    sandbox.run("once y -- echo x").succeeds();
}

#[test]
fn the_outcome_is_told_to_programs() {
    let sandbox = Sandbox::new();
    let outcome = |ended: &Ended| -> Value {
        let lines = ended.stderr.lines().filter(|line| line.starts_with('{'));
        let events = lines.map(|line| serde_json::from_str(line).unwrap());
        let [.., outcome, end] = &events.collect::<Vec<Value>>()[..] else {
            panic!("{ended:?}");
        };
        assert_fields(end, json!({"event": "end", "exit_code": ended.code()}));
        outcome.clone()
    };
    let [first, again] = [(); 2].map(|()| call(&sandbox, "--json --retain 2h"));
    let (told, replayed) = (outcome(&first), outcome(&again));
    let sort = json!({"event": "once", "version": 1, "key": "pay/17"});
    assert_fields(&told, sort);
    let result = json!({"outcome": "committed", "exit_code": 0, "kept_for_ms": 7_200_000});
    assert_fields(&told, result);
    assert_eq!(told["stderr"]["bytes"], "a remark\n".len());
    let stdout = json!({"bytes": first.stdout.len(), "cut": false});
    assert_fields(&told["stdout"], stdout);
    let same = json!({"outcome": "replayed", "fence": told["fence"]});
    assert_fields(&replayed, same);
    let kept_for = replayed["kept_for_ms"].as_u64().unwrap();
    assert!((1..=7_200_000).contains(&kept_for), "{kept_for}");
    let failed = outcome(&sandbox.run("once --json x -- false"));
    let result = json!({"outcome": "failed", "exit_code": 1, "kept_for_ms": null});
    assert_fields(&failed, result);
    let error = outcome(&sandbox.run("once --json pay/17 -- false"));
    assert_fields(&error, json!({"event": "error", "exit_code": 64}));
}

#[test]
fn of_a_long_output_the_beginning_is_kept() {
    let sandbox = Sandbox::new();
    let script =
        "head -c 600000 /dev/zero | tr '\\0' x; echo end; head -c 9 /dev/zero | tr '\\0' y >&2";
    let command = sh("once x", script);
    let warning = "only the first 524261 bytes of stdout are kept";
    let first = sandbox.run(&command);
    first.fails(0, &[warning, "yyyyyyyyy"]);
    assert_eq!(first.stdout.len(), 600_004, "all of it is shown");
    assert!(first.stdout.ends_with("xend\n"));
    let again = sandbox.run(&command);
    again.fails(0, &[warning, "yyyyyyyyy"]);
    assert_eq!(again.stdout, "x".repeat(524_261));
}

#[test]
fn background_processes_are_not_awaited() {
    let sandbox = Sandbox::new();
    sandbox.gate("gate");
    let script = "sh -c 'echo $$ > left; read line < gate; echo late' & echo done; while [ ! -s left ]; do :; done";
    let command = sh("once x", script);
    let first = sandbox.run(&command);
    assert_eq!((first.code(), &*first.stdout), (0, "done\n"));
    let left = sandbox.pid_in("left");
    assert_eq!(sandbox.run(&command).stdout, "done\n");
    sandbox.open_gate("gate");
    until_gone(left);
}

#[test]
fn unreachable_store_is_69_before_running() {
    let sandbox = Sandbox::new();
    for (wait, warnings) in [("-n", 0), ("-w 3s", 1)] {
        let ended = sandbox.run(&format!(
            "once --store redis://127.0.0.1:1 {wait} x touch ran"
        ));
        ended.fails(69, &["127.0.0.1:1"]);
        let count = ended.stderr.matches("warning: ").count();
        assert_eq!(count, warnings, "{ended:?}");
    }
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn damaged_result_is_reported_without_running() {
    let sandbox = Sandbox::new();
    call(&sandbox, "").fails(0, &[]);
    let path = sandbox.path("locks/pay%2F17.lock.record");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 10;
    bytes[last] ^= 1;
    fs::write(&path, bytes).unwrap();
    let parts = ["pay%2F17.lock.record is damaged", "checksum"];
    call(&sandbox, "").fails(65, &parts);
    assert_eq!(sandbox.lines_in("ran").len(), 1);
    fs::remove_file(&path).unwrap();
    call(&sandbox, "").fails(0, &[]);
    assert_eq!(sandbox.lines_in("ran").len(), 2);
}
