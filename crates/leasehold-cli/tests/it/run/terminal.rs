use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;

use crate::support::harness::{COUNTER, PROGRAM, Sandbox};
use crate::support::processes::{
    parent_and_group, signal, until_gone, until_running, until_stopped,
};
use crate::support::program::sh;
use crate::support::pty::OnTerminal;

const CTRL_C: &str = "\x03";
const CTRL_Z: &str = "\x1a";

#[test]
fn a_reader_of_the_terminal_can_read_it() {
    let sandbox = Sandbox::new();
    let script = "echo ready; read answer; echo got-$answer; exit 4";
    let mut terminal = OnTerminal::leasehold(&sandbox, &sh("run x", script));
    terminal.shows("ready");
    terminal.types("forty\n");
    terminal.shows("got-forty");
    assert_eq!(terminal.exit_code(), 4);
}

#[test]
fn command_has_the_terminal_from_the_start() {
    let sandbox = Sandbox::new();
    // Field 8 of its line is the group that has the terminal, field 5 its own group.
    let script = "set -- $(cut -d' ' -f5,8 /proc/self/stat); test $1 = $2";
    let terminal = OnTerminal::leasehold(&sandbox, &sh("run x", script));
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn the_interrupt_key_reaches_the_command_once() {
    let sandbox = Sandbox::new();
    let script = "trap 'echo interrupted >> got' INT; echo ready; \
                  while [ ! -e go ]; do sleep 0.02; done; cat got";
    let mut terminal = OnTerminal::leasehold(&sandbox, &sh("run x", script));
    terminal.shows("ready");
    terminal.types(CTRL_C);
    assert_eq!(sandbox.line_in("got"), "interrupted");
    sandbox.let_go();
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(sandbox.line_in("got"), "interrupted");
}

/// Types `command`, whose command prints `ready`, and interrupts it.
fn interrupt(shell: &mut OnTerminal, command: &str) {
    shell.types(&format!(
        "{command} -- sh -c 'echo ready; exec sleep 1000'\n"
    ));
    shell.shows("ready");
    shell.types(CTRL_C);
    shell.types("echo code-$?\n");
    shell.shows("code-130");
}

#[test]
fn interrupted_command_is_130_to_the_shell() {
    let sandbox = Sandbox::new();
    let mut shell = OnTerminal::shell(&sandbox);
    interrupt(&mut shell, "$LEASEHOLD run x");
    // Nor does it wait for the end of the span.
    interrupt(&mut shell, "$LEASEHOLD run --min-hold 1h x");
    assert!(sandbox.is_free("x"));
}

#[test]
fn no_handle_is_waited_for_from_the_keyboard() {
    let sandbox = Sandbox::new();
    let mut shell = OnTerminal::shell(&sandbox);
    shell.types("LEASEHOLD_STORE=redis://127.0.0.1:1 $LEASEHOLD release; echo code-$?\n");
    shell.shows("no handle in stdin");
    shell.shows("code-64");
}

#[test]
fn interrupt_key_ends_the_whole_script() {
    let sandbox = Sandbox::new();
    let script = "while :; do $LEASEHOLD run x -- sh -c 'echo ready; exec sleep 1000'; done";
    for shell in ["bash", "dash"] {
        let mut terminal = OnTerminal::start(&sandbox, "bash --norc -i");
        terminal.types("stty -echo\n");
        terminal.types(&format!("{shell} -c \"{script}\"\n"));
        terminal.shows("ready\r\n");
        terminal.types(CTRL_C);
        terminal.types("echo code-$?\n");
        terminal.shows("code-130");
    }
}

#[test]
fn stop_key_stops_the_whole_script() {
    let sandbox = Sandbox::new();
    let mut shell = OnTerminal::shell(&sandbox);
    let script = "$LEASEHOLD run x -- sh -c 'echo ready; read a; echo got-\\$a'; echo after";
    shell.types(&format!("sh -c \"{script}\"\n"));
    shell.shows("ready");
    shell.types(CTRL_Z);
    shell.shows("Stopped");
    shell.answers(2);
    shell.types("fg\n");
    shell.types("on\n");
    shell.shows("got-on");
    shell.shows("after");
}

#[test]
fn interrupted_once_leaves_no_request() {
    let sandbox = Sandbox::new();
    interrupt(&mut OnTerminal::shell(&sandbox), "$LEASEHOLD once x");
    // Also for another command, which a request that has begun would refuse.
    let other = sandbox.run("once x -- echo other").succeeds();
    assert_eq!(other.stdout, "other\n");
}

#[test]
fn the_interrupt_key_reaches_a_nested_command_once() {
    let sandbox = Sandbox::new();
    let arguments = [
        PROGRAM, "run", "outer", "--", PROGRAM, "run", "inner", "--", "sh", "-c", COUNTER,
    ];
    let mut terminal = OnTerminal::start(&sandbox, &arguments);
    let command = sandbox.pid_in("pid");
    let (guardian, _) = parent_and_group(command);
    for number in 1..=5 {
        terminal.types(CTRL_C);
        until("the interrupt arrives", || {
            sandbox.lines_in("got").len() >= number
        });
    }
    // What the wrapper passes on comes in order: a second interrupt would come before this.
    signal(parent_and_group(guardian).0, Signal::SIGUSR2);
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(sandbox.lines_in("got"), ["INT"; 5]);
}

#[test]
fn stop_key_returns_to_the_shell_until_fg() {
    let sandbox = Sandbox::new();
    let mut shell = OnTerminal::shell(&sandbox);
    shell.types("$LEASEHOLD run x -- sh -c 'echo $$ > pid; echo ready; read a; echo got-$a'\n");
    shell.shows("ready");
    let command = sandbox.pid_in("pid");
    let (guardian, group) = parent_and_group(command);
    let (wrapper, _) = parent_and_group(guardian);
    assert_eq!(shell.foreground(), group);
    shell.types(CTRL_Z);
    shell.shows("Stopped");
    until_stopped(command);
    until_stopped(wrapper);
    shell.types("echo shell-$((2+2)); $LEASEHOLD run -n x true; echo code-$?\n");
    shell.shows("shell-4");
    shell.shows("code-75");
    shell.types("fg\n");
    until_running(command);
    shell.until_foreground(group);
    shell.types("again\n");
    shell.shows("got-again");
    shell.answers(3);
    shell.types("exit\n");
    assert_eq!(shell.exit_code(), 0);
}

#[test]
fn job_stopped_twice_continues_in_the_background() {
    let sandbox = Sandbox::new();
    sandbox.gate("go");
    let mut shell = OnTerminal::shell(&sandbox);
    let script = "echo $$ > pid; echo ready; read go < go; exit 3";
    shell.types(&format!("$LEASEHOLD run x -- sh -c '{script}'\n"));
    shell.shows("ready");
    let command = sandbox.pid_in("pid");
    for _ in 0..2 {
        shell.types(CTRL_Z);
        shell.shows("Stopped");
        until_stopped(command);
        shell.types("fg\n");
        until_running(command);
        shell.until_foreground(command);
    }
    shell.types(CTRL_Z);
    shell.shows("Stopped");
    shell.types("bg; echo shell-$((4+4))\n");
    shell.shows("shell-8");
    until_running(command);
    sandbox.open_gate("go");
    shell.types("wait %1; echo code-$?\n");
    shell.shows("code-3");
}

#[test]
fn background_job_stops_at_the_terminal() {
    let sandbox = Sandbox::new();
    let mut shell = OnTerminal::shell(&sandbox);
    shell.types("$LEASEHOLD run x -- sh -c 'echo $$ > pid; read a; echo got-$a' &\n");
    let command = sandbox.pid_in("pid");
    until_stopped(command);
    let (guardian, _) = parent_and_group(command);
    until_stopped(parent_and_group(guardian).0);
    shell.types("while ! jobs | grep -q Stopped; do sleep 0.02; done; echo shell-$((7+7))\n");
    shell.shows("shell-14");
    shell.types("fg\n");
    shell.until_foreground(command);
    shell.types("late\n");
    shell.shows("got-late");
}

#[test]
fn pipeline_keeps_the_terminal_until_needed() {
    let sandbox = Sandbox::new();
    let mut shell = OnTerminal::shell(&sandbox);
    shell.types(
        "$LEASEHOLD run x -- sh -c 'echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done; \
         read a; echo got-$a' | cat\n",
    );
    let command = sandbox.pid_in("pid");
    assert_ne!(shell.foreground(), command, "cat may want it too");
    sandbox.let_go();
    shell.until_foreground(command);
    shell.types("piped\n");
    shell.shows("got-piped");
    shell.answers(5);
}

#[test]
fn the_shell_goes_on_after_a_killed_job() {
    let sandbox = Sandbox::new();
    let mut shell = OnTerminal::shell(&sandbox);
    shell.types("$LEASEHOLD run x -- sh -c 'echo $$ > pid; echo ready; read a'\n");
    shell.shows("ready");
    let command = sandbox.pid_in("pid");
    let (guardian, _) = parent_and_group(command);
    signal(parent_and_group(guardian).0, Signal::SIGKILL);
    shell.shows("Killed");
    until_gone(command);
    shell.answers(6);
}

#[test]
fn the_status_line_is_shown_refreshed_and_wiped() {
    let sandbox = Sandbox::new();
    let first = sandbox.hold("x", "pid");
    let mut terminal = OnTerminal::leasehold(&sandbox, "run x -- echo mine");
    let holder = format!("held by pid {} on", first.pid());
    terminal.shows(r#"waiting for "x""#);
    terminal.shows(&holder);
    // What is cut at the edge leaves no single character there.
    terminal.shows("\x1b[K\x1b[?7h");
    terminal.shows("\r\x1b[K");
    terminal.shows("waiting 1s for ");
    assert!(!terminal.screen().contains('\n'), "it stays one line");
    sandbox.let_go();
    terminal.shows("\r\x1b[Kleasehold: acquired lock \"x\" after ");
    terminal.shows("mine");
    terminal.shows(", exit 0");
    assert_eq!(terminal.exit_code(), 0);
    first.wait().succeeds();
}

#[test]
fn the_interrupt_key_ends_a_wait() {
    let sandbox = Sandbox::new();
    let first = sandbox.hold("x", "pid");
    let mut terminal = OnTerminal::leasehold(&sandbox, "run x -- true");
    terminal.shows("waiting");
    terminal.types(CTRL_C);
    assert_eq!(terminal.exit_code(), 130);
    drop(first);
}

#[test]
fn interrupt_key_in_a_wait_ends_the_script() {
    let sandbox = Sandbox::new();
    let _first = sandbox.hold("x", "pid");
    for command in ["run x true", "hold --ignore-stdin x", "wait x"] {
        let mut shell = OnTerminal::shell(&sandbox);
        // The shell of the script would show the code of `echo`.
        shell.types(&format!("bash -c '$LEASEHOLD {command}; echo went on'\n"));
        shell.shows("waiting");
        shell.types(CTRL_C);
        shell.types("echo code-$?\n");
        shell.shows("code-130");
    }
}
