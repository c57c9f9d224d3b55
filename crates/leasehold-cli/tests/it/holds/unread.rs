//! Streams that no process reads.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Write as _, pipe};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leasehold_testkit::servers::{RedisServer, Reply, until};
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::support::harness::Sandbox;
use crate::support::processes::outlast;
use crate::support::program::sh;

/// A pipe with no room left, and no process that reads it.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = pipe().unwrap();
    let set = |flags| fcntl(&writer, FcntlArg::F_SETFL(flags)).unwrap();
    set(OFlag::O_NONBLOCK);
    for length in [4096, 1] {
        while (&writer).write(&vec![b'.'; length]).is_ok() {}
    }
    set(OFlag::empty());
    (reader, writer)
}

/// A program that is killed if the test ends before it.
struct Killed(Child);

impl Killed {
    fn start(mut command: Command) -> Self {
        Self(command.spawn().unwrap())
    }

    #[track_caller]
    fn code(&mut self) -> Option<i32> {
        let mut status = None;
        until("the end of the program", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `hold x`, whose streams are these.
fn hold(sandbox: &Sandbox, ttl: &str, stdout: Stdio, stderr: Stdio) -> Killed {
    let mut command = sandbox.leasehold();
    command.args(["hold", "--ignore-stdin", "--ttl", ttl, "x"]);
    command.stdout(stdout).stderr(stderr);
    Killed::start(command)
}

/// Waits until `x` has a holder.
fn until_held(server: &RedisServer) {
    until("the lock to be held", || {
        server.command(&["EXISTS", "x"]) == Reply::Integer(1)
    });
}

fn ttl_left(server: &RedisServer) -> i64 {
    match server.command(&["PTTL", "x"]) {
        Reply::Integer(millis) => millis,
        other => panic!("PTTL: {other:?}"),
    }
}

/// Waits until the holder of `x` renews its lease, and thus knows that it has the lock.
fn until_renewed(server: &RedisServer) {
    until_held(server);
    let mut least = i64::MAX;
    until("a renewal", || {
        let left = ttl_left(server);
        let is_renewed = left > least;
        least = left;
        is_renewed
    });
}

#[test]
fn redis_loss_is_reported_past_full_stderr() {
    let (sandbox, mut server) = Sandbox::on_redis();
    let (_reader, stderr) = full_pipe();
    let stdout = File::create(sandbox.path("out")).unwrap();
    let mut holder = hold(&sandbox, "3s", stdout.into(), stderr.into());
    sandbox.line_in("out");
    server.kill();
    assert_eq!(holder.code(), Some(76));
    let lines = sandbox.lines_in("out");
    assert!(lines[1].contains(r#""event":"lost""#), "{lines:?}");
}

#[test]
fn redis_loss_ends_hold_past_full_stdout() {
    let (sandbox, mut server) = Sandbox::on_redis();
    let [(_out, stdout), (_err, stderr)] = [full_pipe(), full_pipe()];
    let mut holder = hold(&sandbox, "3s", stdout.into(), stderr.into());
    until_renewed(&server);
    server.kill();
    assert_eq!(holder.code(), Some(76));
}

#[test]
fn redis_lock_survives_outage_with_full_stderr() {
    let (sandbox, server) = Sandbox::on_redis();
    let (_reader, stderr) = full_pipe();
    let mut command = sandbox.leasehold();
    command.args(sh("run --ttl 15s x", "read line < gate; exit 9"));
    command.stderr(stderr);
    sandbox.gate("gate");
    let mut holder = Killed::start(command);
    until_held(&server);
    // Long enough for a warning.
    server.freeze();
    outlast(Duration::from_secs(7));
    server.thaw();
    until("a part of the TTL to pass", || ttl_left(&server) < 11_000);
    until("a renewal after the outage", || ttl_left(&server) > 12_000);
    sandbox.open_gate("gate");
    assert_eq!(holder.code(), Some(9));
}

#[test]
fn redis_late_reader_gets_all_messages() {
    let (sandbox, mut server) = Sandbox::on_redis();
    let (reader, stderr) = full_pipe();
    let stdout = File::create(sandbox.path("out")).unwrap();
    let mut holder = hold(&sandbox, "3s", stdout.into(), stderr.into());
    sandbox.line_in("out");
    server.kill();
    let mut cat = Command::new("cat");
    let messages = File::create(sandbox.path("messages")).unwrap();
    cat.stdin(reader).stdout(messages);
    let mut cat = Killed::start(cat);
    assert_eq!(holder.code(), Some(76));
    assert_eq!(cat.code(), Some(0));
    let text = sandbox.line_in("messages");
    assert!(text.contains("renewals fail"), "{text}");
    assert!(text.contains(r#"lost lock "x""#), "{text}");
}
