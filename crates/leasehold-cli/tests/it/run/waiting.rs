use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::harness::Sandbox;
use crate::support::processes;
use crate::support::program::sh;

#[test]
fn one_waits_says_for_whom_and_then_runs() {
    let sandbox = Sandbox::new();
    let first = sandbox.hold("deploy", "held");
    let second = sandbox.start(&sh("run -v deploy", "cat first"));
    let holder = format!("held by leasehold (pid {} on ", first.pid());
    second.says(&holder);
    sandbox.finish(first);
    let second = second.wait();
    assert_eq!((second.code(), &*second.stdout), (0, "done\n"));
    assert_eq!(
        second.stderr.lines().count(),
        3,
        "begin and end: {second:?}"
    );
}

#[test]
fn no_wait_is_75_or_the_chosen_code() {
    let sandbox = Sandbox::new();
    let first = sandbox.hold("deploy", "held");
    let busy = sandbox.run("run -n deploy touch second");
    let holder = format!("is held by leasehold (pid {}", first.pid());
    busy.fails(75, &["deploy", &holder]);
    let busy = sandbox.run("run -n -E 9 deploy touch second");
    assert_eq!(busy.code(), 9);
    assert!(!sandbox.path("second").exists());
    let other = sandbox.run("run -n other true");
    assert_eq!(other.code(), 0, "another lock is another lock");
}

#[test]
fn a_wait_ends_when_it_was_said_to() {
    let sandbox = Sandbox::new();
    let _first = sandbox.hold("deploy", "held");
    let began = SystemClock.now();
    let busy = sandbox.run("run -w 2s deploy touch second");
    let waited = SystemClock.now().since(began);
    busy.fails(75, &["held by leasehold", "gave up after 2s"]);
    assert!(waited.as_secs() >= 2, "{waited:?}");
    assert!(!sandbox.path("second").exists());
}

/// Cron sends mail for each line.
#[test]
fn wait_that_succeeds_writes_nothing_to_a_log() {
    let sandbox = Sandbox::new();
    let first = sandbox.hold("deploy", "held");
    let second = sandbox.start("run --json-file events deploy touch second");
    let has_event = |line: &String| line.contains("waiting");
    until("the event of the wait", || {
        sandbox.lines_in("events").iter().any(has_event)
    });
    sandbox.finish(first);
    assert_eq!(second.wait().succeeds().stderr, "");
    let kind = |line: &String| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["event"].as_str().unwrap().to_owned()
    };
    let kinds: Vec<String> = sandbox.lines_in("events").iter().map(kind).collect();
    assert_eq!(kinds, ["waiting", "acquired", "released", "end"]);
}

#[test]
fn wait_says_why_no_server_answers() {
    // No server has this port.
    for scheme in ["redis", "postgres", "etcd", "zookeeper"] {
        let sandbox = Sandbox::on(&[format!("{scheme}://127.0.0.1:1")]);
        let refused = sandbox.run("run -w 2s --json-file events x touch ran");
        let why = "Connection refused";
        // On a busy machine, it has waited for a second by then, and says so.
        let waits = "for lock \"x\": ";
        refused.fails(69, &["waiting for ", waits, "127.0.0.1:1", why]);
        let events = sandbox.lines_in("events").into_iter();
        let mut events = events.map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let waiting = events.find(|event| event["event"] == "waiting").unwrap();
        let reason = waiting["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{waiting}");
        assert!(!sandbox.path("ran").exists());
    }
}

#[test]
fn events_file_that_cannot_be_written_is_74() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run("run --json-file none/events deploy touch ran");
    ended.fails(74, &["cannot write events to none/events"]);
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn events_that_are_lost_are_warned_of_once() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run("run --json-file /dev/full deploy true");
    let warning = "warning: events are lost, because --json-file cannot be written: ";
    let said = ended.succeeds().stderr;
    assert!(
        said.matches(warning).count() == 1 && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn shortest_wait_takes_a_free_lock() {
    let sandbox = Sandbox::new();
    sandbox.run("run -w 0.0001 deploy true").succeeds();
    let _first = sandbox.hold("deploy", "held");
    sandbox
        .run("run -w 0.0001 deploy true")
        .fails(75, &["held by"]);
}

#[test]
fn an_ignored_signal_does_not_end_a_wait() {
    let sandbox = Sandbox::new();
    let first = sandbox.hold("deploy", "held");
    let second = sandbox.shell("trap '' HUP; exec \"$LEASEHOLD\" run -v deploy true");
    second.says("waiting");
    second.signal(Signal::SIGHUP);
    sandbox.finish(first);
    second.wait().succeeds();
}

#[test]
fn stopped_waiter_continues_waiting() {
    let sandbox = Sandbox::new();
    let first = sandbox.hold("deploy", "held");
    let second = sandbox.start("run -v deploy true");
    second.says("waiting");
    second.signal(Signal::SIGTSTP);
    processes::until_stopped(second.pid());
    second.signal(Signal::SIGCONT);
    sandbox.finish(first);
    second.wait().succeeds();
}

#[test]
fn background_processes_are_left_alone() {
    let sandbox = Sandbox::new();
    let script = "sh -c 'echo $$ > pid; exec sleep 1000' >&- 2>&- & while [ ! -s pid ]; do :; done";
    let ended = sandbox.run(&sh("run x", script));
    assert_eq!(ended.code(), 0);
    let left = sandbox.pid_in("pid");
    assert!(processes::state(left).is_some());
    assert!(sandbox.is_free("x"));
    processes::signal(left, Signal::SIGKILL);
}
