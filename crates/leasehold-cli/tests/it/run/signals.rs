use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;

use leasehold_testkit::servers::until;
use nix::fcntl::OFlag;
use nix::sys::signal::Signal;

use crate::support::harness::Sandbox;
use crate::support::processes::{
    guardian_of, signal, state, until_gone, until_running, until_stopped,
};
use crate::support::program::sh;

#[test]
fn signals_are_passed_on_to_the_command() {
    let sandbox = Sandbox::new();
    let script = r#"
        for signal in HUP INT QUIT USR1 USR2 ALRM WINCH; do trap "echo $signal >> got" $signal; done
        trap 'exit 5' TERM
        echo $$ > pid
        while :; do sleep 0.02; done"#;
    let run = sandbox.start(&sh("run x", script));
    sandbox.pid_in("pid");
    for sent in [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGALRM,
        Signal::SIGWINCH,
    ] {
        run.signal(sent);
        let name = sent.as_str().trim_start_matches("SIG");
        until(&format!("{name} arrives"), || {
            sandbox.line_in_if_any("got").ends_with(name)
        });
    }
    run.signal(Signal::SIGTERM);
    assert_eq!(run.wait().code(), 5);
}

/// A command that notes TERM and USR1, and its process id.
const NOTES: &str = "
    trap 'echo TERM >> got' TERM
    trap 'echo USR1 >> got' USR1
    echo $$ > pid
    while :; do sleep 0.02; done";

#[test]
fn signal_to_the_wrapper_arrives_once() {
    let sandbox = Sandbox::new();
    let run = sandbox.start(&sh("run x", NOTES));
    sandbox.pid_in("pid");
    run.signal(Signal::SIGTERM);
    until("TERM arrives", || sandbox.line_in_if_any("got") == "TERM");
    run.signal(Signal::SIGUSR1);
    until("USR1 arrives", || sandbox.lines_in("got").len() == 2);
    assert_eq!(sandbox.lines_in("got"), ["TERM", "USR1"]);
}

#[test]
fn signal_to_all_processes_arrives_once() {
    let sandbox = Sandbox::new();
    let run = sandbox.start(&sh("run x", NOTES));
    let command = sandbox.pid_in("pid");
    // As systemd does with all processes of a service. The wrapper is last, so that the test holds however
    // slow the machine is.
    for pid in [guardian_of(command), command, run.pid()] {
        signal(pid, Signal::SIGTERM);
    }
    // Signals are passed on in their order, so a second TERM would come before this one.
    run.signal(Signal::SIGUSR1);
    until("USR1 arrives", || {
        sandbox.lines_in("got").contains(&"USR1".into())
    });
    assert_eq!(sandbox.lines_in("got"), ["TERM", "USR1"]);
}

#[test]
fn signal_reaches_the_group_and_code_returns() {
    let sandbox = Sandbox::new();
    let script = "sh -c 'echo $$ > child; exec sleep 1000' & echo $$ > pid; wait";
    let run = sandbox.start(&sh("run x", script));
    let (command, child) = (sandbox.pid_in("pid"), sandbox.pid_in("child"));
    run.signal(Signal::SIGTERM);
    assert_eq!(run.wait().code(), 143);
    until_gone(command);
    until_gone(child);
}

#[test]
fn stop_and_continue_affect_both() {
    let sandbox = Sandbox::new();
    sandbox.gate("go");
    let script = "echo $$ > pid; read go < go; exit 3";
    let run = sandbox.start(&sh("run x", script));
    let command = sandbox.pid_in("pid");
    run.signal(Signal::SIGTSTP);
    until_stopped(command);
    until_stopped(run.pid());
    run.signal(Signal::SIGCONT);
    until_running(run.pid());
    until_running(command);
    sandbox.open_gate("go");
    assert_eq!(run.wait().code(), 3);
}

#[test]
fn wrapper_stops_and_continues_with_the_command() {
    let sandbox = Sandbox::new();
    sandbox.gate("go");
    let script = "echo $$ > pid; read go < go; exit 3";
    let run = sandbox.start(&sh("run x", script));
    let command = sandbox.pid_in("pid");
    signal(command, Signal::SIGSTOP);
    until_stopped(run.pid());
    signal(command, Signal::SIGCONT);
    until_running(run.pid());
    sandbox.open_gate("go");
    assert_eq!(run.wait().code(), 3);
}

#[test]
fn stopped_command_of_killed_wrapper_ends() {
    let sandbox = Sandbox::new();
    sandbox.gate("go");
    let script = "echo $$ > pid; read go < go";
    let run = sandbox.start(&sh("run x", script));
    let command = sandbox.pid_in("pid");
    run.signal(Signal::SIGTSTP);
    until_stopped(run.pid());
    run.signal(Signal::SIGKILL);
    until_gone(command);
}

#[test]
fn what_was_ignored_stays_ignored() {
    let sandbox = Sandbox::new();
    let script = "trap '' HUP; exec \"$LEASEHOLD\" run x -- sh -c \
                  'echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done'";
    let run = sandbox.shell(script);
    let command = sandbox.pid_in("pid");
    run.signal(Signal::SIGHUP);
    signal(command, Signal::SIGHUP);
    assert!(state(command).is_some());
    sandbox.finish(run);
}

#[test]
fn command_inherits_the_signals_that_are_ignored() {
    let sandbox = Sandbox::new();
    let script = "trap '' HUP INT QUIT; exec \"$LEASEHOLD\" run x -- grep SigIgn /proc/self/status";
    let ended = sandbox.shell(script).wait();
    let mask = ended.stdout.trim_end().strip_prefix("SigIgn:\t");
    let mask = u64::from_str_radix(mask.unwrap(), 16).unwrap();
    // Signals 1 to 3, which nohup ignores, and a shell for a script's background jobs.
    assert_eq!(mask & 0b111, 0b111, "{ended:?}");
}

#[test]
fn tests_pass_where_signals_are_ignored() {
    let sandbox = Sandbox::new();
    let tests = std::env::current_exe().unwrap();
    let test = "run::signals::signals_are_passed_on_to_the_command";
    let script = "trap '' HUP INT QUIT TERM USR1; exec";
    let ended = sandbox
        .shell(&format!("{script} '{}' --exact {test}", tests.display()))
        .wait();
    assert!(ended.stdout.contains("1 passed"), "{ended:?}");
}

#[test]
fn the_command_starts_with_no_signal_blocked() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run("run x -- grep SigBlk /proc/self/status");
    assert_eq!(ended.stdout.trim_end(), "SigBlk:\t0000000000000000");
}

#[test]
fn signal_ends_the_wait_for_a_configuration_pipe() {
    let sandbox = Sandbox::new();
    sandbox.gate("config");
    let pipe = sandbox.path("config");
    let mut command = sandbox.without_store();
    command.env("LEASEHOLD_CONFIG", &pipe);
    command.args(["run", "x", "--", "true"]);
    let run = sandbox.spawn(command);
    let mut writer = OpenOptions::new();
    writer.write(true).custom_flags(OFlag::O_NONBLOCK.bits());
    let mut open = None;
    // This fails while no process reads.
    until("the program reads the pipe", || {
        open = writer.open(&pipe).ok();
        open.is_some()
    });
    run.signal(Signal::SIGTERM);
    assert_eq!(run.wait().status.signal(), Some(Signal::SIGTERM as i32));
}
