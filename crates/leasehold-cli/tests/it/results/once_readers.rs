//! `once` with a slow reader of its output, or without one: it keeps the result all the same.

use std::io::{PipeReader, Read as _, pipe};
use std::process::Child;

use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;

use crate::support::harness::Sandbox;
use crate::support::processes::{signal, until_gone};
use crate::support::program::{Ended, sh, shell_code};

/// More than fits into the pipe of a reader that does not read, but not enough to block the command.
const LONG: &str = "echo x >> ran; head -c 100000 /dev/zero | tr '\\0' x; echo end";

/// More than fits into all pipes on the way.
const TOO_LONG: &str = "echo $$ > pid; exec head -c 10000000 /dev/zero";

/// A call whose stdout is a pipe that is not read yet; killed if the test ends before it.
struct Unread {
    child: Child,
    stdout: PipeReader,
}

impl Unread {
    fn start(sandbox: &Sandbox, args: &[String]) -> Self {
        let (stdout, writer) = pipe().unwrap();
        let mut command = sandbox.leasehold();
        let child = command.args(args).stdout(writer).spawn().unwrap();
        // From now on only the child has this end of the pipe.
        drop(command);
        Self { child, stdout }
    }

    fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    #[track_caller]
    fn exit_code(&mut self) -> Option<i32> {
        let mut status = None;
        until("the end of the program", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.map(shell_code)
    }

    /// Waits until it has written something, which it does before it has written all.
    fn first_byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stdout.read_exact(&mut byte).unwrap();
        byte[0]
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn result_is_committed_before_a_slow_reader() {
    let sandbox = Sandbox::new();
    let command = sh("once x", LONG);
    let mut first = Unread::start(&sandbox, &command);
    assert_eq!(first.first_byte(), b'x');
    // The second call gets the lock, although the test has not read on.
    let second = sandbox.run(&command);
    assert_eq!((second.code(), second.stdout.len()), (0, 100_004));
    assert!(sandbox.is_free("x"));
    let mut rest = String::new();
    first.stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, second.stdout[1..], "whoever reads at last gets all");
    assert_eq!(first.exit_code(), Some(0));
    assert_eq!(sandbox.lines_in("ran").len(), 1);
}

#[test]
fn a_signal_ends_the_wait_for_a_reader() {
    let sandbox = Sandbox::new();
    let command = sh("once x", LONG);
    let mut first = Unread::start(&sandbox, &command);
    first.first_byte();
    sandbox.run(&command).succeeds();
    let mut replaying = Unread::start(&sandbox, &command);
    replaying.first_byte();
    for call in [&mut first, &mut replaying] {
        signal(call.pid(), Signal::SIGTERM);
        assert_eq!(call.exit_code(), Some(143));
    }
    assert_eq!(sandbox.lines_in("ran").len(), 1);
}

#[test]
fn signal_ends_a_command_blocked_on_output() {
    let sandbox = Sandbox::new();
    let mut call = Unread::start(&sandbox, &sh("once x", TOO_LONG));
    call.first_byte();
    let running = sandbox.pid_in("pid");
    signal(call.pid(), Signal::SIGTERM);
    assert_eq!(call.exit_code(), Some(143));
    until_gone(running);
    assert!(sandbox.is_free("x"));
    let next = sandbox.run("once x -- echo anew");
    assert_eq!(next.stdout, "anew\n", "nothing was kept");
}

#[test]
fn result_is_kept_without_a_reader() {
    let sandbox = Sandbox::new();
    let script = "read line < gate; echo x >> ran; echo one; echo two";
    sandbox.gate("gate");
    let command = sh("once x", script);
    let mut first = Unread::start(&sandbox, &command);
    let (stdout, _) = pipe().unwrap();
    drop(std::mem::replace(&mut first.stdout, stdout));
    sandbox.open_gate("gate");
    assert_eq!(first.exit_code(), Some(0));
    assert_eq!(sandbox.run(&command).stdout, "one\ntwo\n");
    assert_eq!(sandbox.lines_in("ran").len(), 1);
}

/// A call whose stdout is on a disk without room.
fn on_a_full_disk(sandbox: &Sandbox, args: &str) -> Ended {
    let script = format!("exec \"$LEASEHOLD\" {args} > /dev/full");
    sandbox.shell(&script).wait()
}

#[test]
fn lost_output_fails_and_the_result_is_kept() {
    let sandbox = Sandbox::new();
    let command = "once x -- sh -c 'echo x >> ran; echo hi'";
    let lost = [
        "cannot write to stdout: No space left",
        "its result is kept",
    ];
    on_a_full_disk(&sandbox, command).fails(74, &lost);
    assert!(sandbox.is_free("x"));
    on_a_full_disk(&sandbox, command).fails(74, &lost);
    let again = sandbox.run(&sh("once x", "echo x >> ran; echo hi"));
    assert_eq!(again.stdout, "hi\n");
    assert_eq!(sandbox.lines_in("ran").len(), 1);
}

#[test]
fn lost_output_of_a_failed_command_is_reported() {
    let sandbox = Sandbox::new();
    let command = "once x -- sh -c 'echo hi; exit 3'";
    let lost = ["cannot write to stdout", "CMD ended with 3", "not kept"];
    on_a_full_disk(&sandbox, command).fails(74, &lost);
}

#[test]
fn each_result_that_is_printed_must_be_written() {
    let sandbox = Sandbox::new();
    for args in ["ls", "ls --json", "status x", "waiters x --json", "--help"] {
        on_a_full_disk(&sandbox, args).fails(74, &["cannot write to stdout"]);
    }
}

#[test]
fn request_waits_for_permit_holders() {
    let sandbox = Sandbox::new();
    let holder = sandbox.hold("--permits 2 x", "pid");
    let busy = sandbox.run("once -n x -- echo done");
    busy.fails(75, &["lock \"x\"", "held"]);
    let waiting = sandbox.start("once -v x -- echo done");
    waiting.says("waiting");
    sandbox.finish(holder);
    assert_eq!(waiting.wait().stdout, "done\n");
}
