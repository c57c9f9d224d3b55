//! Runs inside of runs, on files: under locks of their own, and under the lease of the outer run (`--nested`).

use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;

use crate::support::harness::{COUNTER, Sandbox};
use crate::support::processes::{
    parent_and_group, signal, until_gone, until_running, until_stopped,
};
use crate::support::program::sh;

/// A command that does not end on SIGTERM.
const STUBBORN: (&str, &str) = (
    "STUBBORN",
    "trap '' TERM; echo $$ > inner; while :; do sleep 0.02; done",
);

#[test]
fn environment_has_lock_fence_and_members() {
    let sandbox = Sandbox::new();
    let script = "echo $LEASEHOLD_NAME $LEASEHOLD_MEMBERS $LEASEHOLD_STORE; echo $LEASEHOLD_FENCE";
    let [first, second] = [(); 2].map(|()| -> u64 {
        let ended = sandbox.run(&sh("run x", script));
        let (first, second) = ended.stdout.trim_end().split_once('\n').unwrap();
        let members = format!("file:{}", sandbox.path("locks").display());
        assert_eq!(first, format!("x {members} {}", sandbox.store()));
        second.parse().unwrap()
    });
    assert!(first < second, "{first} {second}");
}

#[test]
fn arguments_of_the_guardian_hide_the_owner() {
    let sandbox = Sandbox::new();
    let script = r#"echo "$LEASEHOLD_RUN"; tr '\0' ' ' < /proc/$PPID/cmdline"#;
    let ended = sandbox.run(&sh("run x", script)).succeeds();
    let (variable, arguments) = ended.stdout.split_once('\n').unwrap();
    let (_, owner) = variable.split_once("\"owner\":\"").unwrap();
    let owner = &owner[..49];
    assert!(arguments.contains("__guardian"), "{arguments}");
    assert!(!arguments.contains(owner), "{arguments}");
}

#[test]
fn nested_run_has_own_variables_same_group() {
    let sandbox = Sandbox::new();
    let script = r#"echo $$; echo $LEASEHOLD_NAME
        "$LEASEHOLD" run inner -- sh -c "echo \$LEASEHOLD_NAME; cut -d' ' -f5 /proc/self/stat"; exit $?"#;
    let ended = sandbox.run(&sh("run outer", script)).succeeds();
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines, [lines[0], "outer", "inner", lines[0]], "{ended:?}");
}

#[test]
fn outer_run_without_the_lock_is_76() {
    let sandbox = Sandbox::new();
    // Left behind by a run that ended: it has the run's environment, and the lock is free.
    let left = r#"while [ ! -e go ]; do sleep 0.02; done
        "$LEASEHOLD" run --nested x -- touch ran 2> said; echo code-$? > code"#;
    let script = sh("run x", "sh -c \"$LEFT\" > /dev/null 2>&1 & exit 0");
    sandbox
        .start_with(("LEFT", left), &script)
        .wait()
        .succeeds();
    assert!(sandbox.is_free("x"));
    sandbox.let_go();
    assert_eq!(sandbox.line_in("code"), "code-76");
    let said = sandbox.line_in_if_any("said");
    let reason = "lock \"x\": the outer run no longer holds it";
    assert!(said.contains(reason), "{said}");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn nested_command_ends_with_the_outer_run() {
    let sandbox = Sandbox::new();
    let left = r#""$LEASEHOLD" run --json --ttl 600ms --nested x -- sh -c 'echo $$ > pid; sleep 1000' 2> said
        echo code-$? > code"#;
    let script = "sh -c \"$LEFT\" > /dev/null 2>&1 & while [ ! -s pid ]; do sleep 0.02; done";
    let outer = sandbox.start_with(("LEFT", left), &sh("run x", script));
    outer.wait().succeeds();
    until_gone(sandbox.pid_in("pid"));
    assert_eq!(sandbox.line_in("code"), "code-76");
    let said = sandbox.lines_in("said");
    assert!(said[0].contains(r#""event":"nested""#), "{said:?}");
    assert!(said[1].contains(r#""event":"lost""#), "{said:?}");
}

#[test]
fn killing_inner_wrapper_ends_only_inner_command() {
    let sandbox = Sandbox::new();
    let script = r#""$LEASEHOLD" run --grace 100ms inner -- sh -c "$STUBBORN" & echo $! > wrapper; wait $!
        "$LEASEHOLD" run -w 25s inner -- true; echo code-$?"#;
    let run = sandbox.start_with(STUBBORN, &sh("run outer", script));
    let (wrapper, command) = (sandbox.pid_in("wrapper"), sandbox.pid_in("inner"));
    signal(wrapper, Signal::SIGKILL);
    assert_eq!(run.wait().succeeds().stdout, "code-0\n");
    until_gone(command);
}

#[test]
fn killing_the_outer_wrapper_ends_all_of_them() {
    for (inner, locks) in [("inner", "outer --also inner"), ("--nested outer", "outer")] {
        let sandbox = Sandbox::new();
        let script = format!("\"$LEASEHOLD\" run {inner} -- sh -c \"$STUBBORN\"");
        let run = sandbox.start_with(STUBBORN, &sh("run --grace 200ms outer", &script));
        let command = sandbox.pid_in("inner");
        run.signal(Signal::SIGKILL);
        sandbox.run(&format!("run -w 25s {locks} true")).succeeds();
        until_gone(command);
    }
}

#[test]
fn stop_and_continue_reach_both_runs() {
    let sandbox = Sandbox::new();
    sandbox.gate("go");
    let inner = ("INNER", "echo $$ > inner; read go < go; exit 6");
    let script = "\"$LEASEHOLD\" run inner -- sh -c \"$INNER\"; exit $?";
    let run = sandbox.start_with(inner, &sh("run outer", script));
    let command = sandbox.pid_in("inner");
    let (inner_guardian, _) = parent_and_group(command);
    let (inner_wrapper, _) = parent_and_group(inner_guardian);
    run.signal(Signal::SIGTSTP);
    for process in [command, inner_wrapper, run.pid()] {
        until_stopped(process);
    }
    run.signal(Signal::SIGCONT);
    for process in [run.pid(), inner_wrapper, command] {
        until_running(process);
    }
    sandbox.open_gate("go");
    assert_eq!(run.wait().code(), 6);
}

#[test]
fn signal_reaches_the_inner_command_once() {
    let sandbox = Sandbox::new();
    let outer = "trap : USR1; \"$LEASEHOLD\" run inner -- sh -c \"$COUNTER\" & \
                 while :; do wait $! && exit 0; done";
    let run = sandbox.start_with(("COUNTER", COUNTER), &sh("run outer", outer));
    let command = sandbox.pid_in("pid");
    let (guardian, _) = parent_and_group(command);
    for number in 1..=5 {
        run.signal(Signal::SIGUSR1);
        until("the signal arrives", || {
            sandbox.lines_in("got").len() >= number
        });
    }
    // What the inner wrapper passes on comes in order: a second signal would come before this.
    signal(parent_and_group(guardian).0, Signal::SIGUSR2);
    run.wait().succeeds();
    assert_eq!(sandbox.lines_in("got"), ["USR1"; 5]);
}
