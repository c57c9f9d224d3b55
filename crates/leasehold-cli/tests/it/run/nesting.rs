use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;

use crate::support::harness::{COUNTER, Sandbox};
use crate::support::processes::{parent_and_group, until_gone, until_running, until_stopped};

#[test]
fn environment_has_lock_fence_and_members() {
    let sandbox = Sandbox::new();
    let script = "echo $LEASEHOLD_NAME $LEASEHOLD_MEMBERS $LEASEHOLD_STORE; echo $LEASEHOLD_FENCE";
    let fence = || -> u64 {
        let ended = sandbox.run(&["run", "x", "--", "sh", "-c", script]);
        let store = sandbox.store();
        let members = format!("file:{}", sandbox.path("locks").display());
        let (first, second) = ended.stdout.trim_end().split_once('\n').unwrap();
        assert_eq!(first, format!("x {members} {store}"));
        second.parse().unwrap()
    };
    let (first, second) = (fence(), fence());
    assert!(first < second, "{first} {second}");
}

#[test]
fn nested_run_has_own_variables_same_group() {
    let sandbox = Sandbox::new();
    let inner = "echo $LEASEHOLD_NAME; cut -d' ' -f5 /proc/self/stat";
    let script = format!(
        "echo $$; echo $LEASEHOLD_NAME; \"$LEASEHOLD\" run inner -- sh -c \"{}\"; exit $?",
        inner.replace('$', "\\$")
    );
    let ended = sandbox.run(&["run", "outer", "--", "sh", "-c", &script]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert_eq!(lines, [lines[0], "outer", "inner", lines[0]], "{ended:?}");
}

#[test]
fn same_lock_again_is_refused_with_holder() {
    let sandbox = Sandbox::new();
    let script = r#""$LEASEHOLD" run inner -- "$LEASEHOLD" run outer -- true; echo code-$?"#;
    let run = sandbox.start(&["run", "outer", "--", "sh", "-c", script]);
    let pid = run.pid();
    let ended = run.wait();
    ended.fails(
        0,
        &[&format!(
            "lock \"outer\" is held by an outer run, leasehold (pid {pid} on "
        )],
    );
    assert_eq!(ended.stdout, "code-64\n");
}

#[test]
fn killing_inner_wrapper_ends_only_inner_command() {
    let sandbox = Sandbox::new();
    let inner = "trap '' TERM; echo $$ > inner; while :; do sleep 0.02; done";
    let script = format!(
        "\"$LEASEHOLD\" run --grace 100ms inner -- sh -c \"{}\" & echo $! > wrapper; wait $!; \
         \"$LEASEHOLD\" run -w 25s inner -- true; echo code-$?",
        inner.replace('$', "\\$")
    );
    let run = sandbox.start(&["run", "outer", "--", "sh", "-c", &script]);
    let (wrapper, command) = (sandbox.pid_in("wrapper"), sandbox.pid_in("inner"));
    crate::support::processes::signal(wrapper, Signal::SIGKILL);
    let ended = run.wait();
    assert_eq!((ended.code(), &*ended.stdout), (0, "code-0\n"), "{ended:?}");
    until_gone(command);
}

#[test]
fn killing_the_outer_wrapper_ends_all_of_them() {
    let sandbox = Sandbox::new();
    let inner = "trap '' TERM; echo $$ > inner; while :; do sleep 0.02; done";
    let script = format!(
        "\"$LEASEHOLD\" run inner -- sh -c \"{}\"",
        inner.replace('$', "\\$")
    );
    let run = sandbox.start(&[
        "run", "--grace", "200ms", "outer", "--", "sh", "-c", &script,
    ]);
    let command = sandbox.pid_in("inner");
    run.signal(Signal::SIGKILL);
    let next = sandbox.run(&["run", "-w", "25s", "outer", "true"]);
    assert_eq!(next.code(), 0);
    until_gone(command);
    assert_eq!(
        sandbox.run(&["run", "-w", "25s", "inner", "true"]).code(),
        0
    );
}

#[test]
fn stop_and_continue_reach_both_runs() {
    let sandbox = Sandbox::new();
    sandbox.gate("go");
    let inner = "echo $$ > inner; read go < go; exit 6";
    let script = format!(
        "\"$LEASEHOLD\" run inner -- sh -c \"{}\"; exit $?",
        inner.replace('$', "\\$")
    );
    let run = sandbox.start(&["run", "outer", "--", "sh", "-c", &script]);
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
    let mut command = sandbox.leasehold();
    command.env("COUNTER", COUNTER);
    command.args(["run", "outer", "--", "sh", "-c", outer]);
    let run = sandbox.spawn(command);
    let command = sandbox.pid_in("pid");
    let (guardian, _) = parent_and_group(command);
    for number in 1..=5 {
        run.signal(Signal::SIGUSR1);
        until("the signal arrives", || {
            sandbox.lines_in("got").len() >= number
        });
    }
    // What the inner wrapper passes on comes in order: a second signal would come before this.
    crate::support::processes::signal(parent_and_group(guardian).0, Signal::SIGUSR2);
    assert_eq!(run.wait().code(), 0);
    assert_eq!(sandbox.lines_in("got"), ["USR1"; 5]);
}
