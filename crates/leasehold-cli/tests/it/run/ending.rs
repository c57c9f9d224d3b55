use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::until;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::support::harness::Sandbox;
use crate::support::processes::{guardian_of, parent_and_group, signal, state, until_gone};
use crate::support::program::{Running, sh};

/// A command that ignores SIGTERM, with a child of its own, and a grandchild in a group of its own
/// whose parent is gone; each leaves its id in a file.
const STUBBORN: &str = r#"
trap "" TERM INT HUP
sh -c 'echo $$ > child; sleep 1000' &
setsid sh -c 'sh -c "echo \$\$ > orphan; exec sleep 1000" & while [ ! -s orphan ]; do :; done' &
wait $!
echo $$ > command
while :; do sleep 1000; done
"#;

fn stubborn(sandbox: &Sandbox, options: &str) -> (Running, [i32; 3]) {
    let run = sandbox.start(&sh(&format!("run {options} x"), STUBBORN));
    let processes = ["command", "child", "orphan"].map(|name| sandbox.pid_in(name));
    (run, processes)
}

#[test]
fn max_hold_before_the_grant_names_no_others() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run("run --max-hold 1ns x touch ran");
    ended.fails(76, &["max_hold ended before the last grant arrived"]);
}

#[test]
fn command_of_killed_wrapper_ends_before_the_next() {
    let sandbox = Sandbox::new();
    let (run, processes) = stubborn(&sandbox, "--grace 300ms");
    let script = format!(
        "for p in {} {} {}; do test ! -e /proc/$p || grep -q 'State:.Z' /proc/$p/status || exit 1; done",
        processes[0], processes[1], processes[2]
    );
    run.signal(Signal::SIGKILL);
    // When the next run gets the lock, none of the processes may be alive.
    sandbox.run(&sh("run -w 25s x", &script)).succeeds();
    processes.into_iter().for_each(until_gone);
}

#[test]
fn command_gets_the_chance_to_obey_sigterm() {
    let sandbox = Sandbox::new();
    let script =
        "trap 'echo tidy > tidied; exit' TERM; echo $$ > pid; while :; do sleep 0.02; done";
    let run = sandbox.start(&sh("run x", script));
    let command = sandbox.pid_in("pid");
    run.signal(Signal::SIGKILL);
    assert_eq!(sandbox.line_in("tidied"), "tidy");
    until_gone(command);
    sandbox.run("run -w 25s x true").succeeds();
}

#[test]
fn killing_the_wrappers_job_ends_the_command() {
    use std::os::unix::process::CommandExt as _;
    let sandbox = Sandbox::new();
    let mut job = sandbox.leasehold();
    job.args(["run", "x", "--", "sh", "-c", "echo $$ > pid; sleep 1000"]);
    job.process_group(0);
    let run = sandbox.spawn(job);
    let command = sandbox.pid_in("pid");
    killpg(Pid::from_raw(run.pid()), Signal::SIGKILL).unwrap();
    until_gone(command);
    sandbox.run("run -w 25s x true").succeeds();
}

#[test]
fn killing_wrapper_and_guardian_ends_the_command() {
    let sandbox = Sandbox::new();
    let run = sandbox.start(&sh("run x", "echo $$ > pid; exec sleep 1000"));
    let command = sandbox.pid_in("pid");
    let guardian = guardian_of(command);
    // Stopped first, so that neither can react to the other's death.
    run.signal(Signal::SIGSTOP);
    signal(guardian, Signal::SIGSTOP);
    run.signal(Signal::SIGKILL);
    signal(guardian, Signal::SIGKILL);
    until_gone(command);
}

#[test]
fn killed_guardian_is_125_without_survivors() {
    let sandbox = Sandbox::new();
    let (run, processes) = stubborn(&sandbox, "");
    signal(guardian_of(processes[0]), Signal::SIGKILL);
    run.wait().fails(125, &["guardian"]);
    assert_eq!(processes.map(state), [None; 3]);
    assert!(sandbox.is_free("x"));
}

#[test]
fn a_killed_guardian_costs_no_stranger_its_life() {
    let sandbox = Sandbox::new();
    // The shell becomes the wrapper, and its child the wrapper's.
    let script = "sleep 1000 & echo $! > stranger; \
                  exec \"$LEASEHOLD\" run x -- sh -c 'echo $$ > pid; sleep 1000'";
    let run = sandbox.shell(script);
    let (stranger, command) = (sandbox.pid_in("stranger"), sandbox.pid_in("pid"));
    signal(guardian_of(command), Signal::SIGKILL);
    run.wait().fails(125, &["guardian"]);
    assert!(state(command).is_none() && state(stranger).is_some());
    signal(stranger, Signal::SIGKILL);
}

#[test]
fn orphans_of_a_running_command_are_reaped() {
    let sandbox = Sandbox::new();
    sandbox.gate("go");
    // The last one is killed by the least real-time signal.
    let script = r#"for n in 1 2; do sh -c 'sh -c "echo \$\$ >> orphans" &'; done
        sh -c 'sh -c "echo \$\$ >> orphans; kill -34 \$\$" &'; read go < go"#;
    let run = sandbox.start(&sh("run x", script));
    until("three orphans", || sandbox.lines_in("orphans").len() == 3);
    for orphan in sandbox.lines_in("orphans") {
        // A zombie is still there.
        until("the orphan is reaped", || {
            !std::path::Path::new("/proc").join(&orphan).exists()
        });
    }
    sandbox.open_gate("go");
    run.wait().succeeds();
}

#[test]
fn the_guardian_stands_beside_the_commands_group() {
    let sandbox = Sandbox::new();
    let run = sandbox.start(&sh("run x", "echo $$ > pid; sleep 1000"));
    let command = sandbox.pid_in("pid");
    let guardian = guardian_of(command);
    let (_, wrappers_group) = parent_and_group(run.pid());
    assert_eq!(parent_and_group(command).1, command);
    assert_eq!(parent_and_group(guardian), (run.pid(), guardian));
    assert_ne!(wrappers_group, guardian);
}

#[test]
fn max_hold_ends_a_stubborn_command_with_76() {
    let sandbox = Sandbox::new();
    let began = SystemClock.now();
    let (run, processes) = stubborn(&sandbox, "--max-hold 3s");
    let ended = run.wait();
    let held = SystemClock.now().since(began);
    ended.fails(76, &[r#"lost lock "x": --max-hold reached"#]);
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert_eq!(processes.map(state), [None; 3]);
    assert!(held.as_millis() >= 2_400, "not before grace: {held:?}");
    assert!(sandbox.is_free("x"));
}

#[test]
fn killed_wrapper_keeps_locks_until_command_ends() {
    for (locks, others) in [
        ("a --also b", &["a", "b"][..]),
        ("--permits 1 workers", &["--permits 1 workers"]),
    ] {
        let sandbox = Sandbox::new();
        let stubborn = "trap '' TERM; echo $$ > held; while :; do sleep 0.02; done";
        let run = sandbox.start(&sh(&format!("run --grace 1s {locks}"), stubborn));
        let command = sandbox.pid_in("held");
        run.signal(Signal::SIGKILL);
        let next = "kill -0 $(cat held) 2>/dev/null && echo overlap";
        let next = |lock: &&str| sandbox.start(&sh(&format!("run -w 25s {lock}"), next));
        let waiting: Vec<Running> = others.iter().map(next).collect();
        for next in waiting.into_iter().map(Running::wait) {
            assert_eq!((next.code(), &*next.stdout), (1, ""), "{next:?}");
        }
        until_gone(command);
    }
}
