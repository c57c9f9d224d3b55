//! How `once` ends after a signal, or on a state that it cannot wait for; and what it does not keep.

use std::fs::File;

use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;

use crate::support::harness::{PROGRAM, Sandbox};
use crate::support::processes::{signal, until_gone};

#[test]
fn background_writers_are_not_awaited() {
    let sandbox = Sandbox::new();
    let script = "yes & echo $! > left; echo done >&2";
    let command = ["once", "x", "--", "sh", "-c", script];
    let first = sandbox.run(&command);
    // The command may write more than is kept; then `once` warns.
    first.fails(0, &["done\n"]);
    until_gone(sandbox.pid_in("left"));
    let again = sandbox.run(&command).succeeds();
    assert!(first.stdout.starts_with(&again.stdout));
}

#[test]
fn signal_ends_a_wait_for_the_record() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run("once x -- false").code(), 1);
    // A shared lock admits reads of the record, but an attempt that begins has to wait.
    let record = File::open(sandbox.path("locks/x.lock.record")).unwrap();
    record.lock_shared().unwrap();
    let call = sandbox.start("once x -- touch touched");
    until("the lock is held", || !sandbox.is_free("x"));
    signal(call.pid(), Signal::SIGTERM);
    assert_eq!(call.wait().code(), 143);
    assert!(sandbox.is_free("x"));
    assert!(!sandbox.path("touched").exists());
    drop(record);
    sandbox.run("once x -- true").succeeds();
}

#[test]
fn binary_output_is_replayed_exactly() {
    let sandbox = Sandbox::new();
    let script = r"printf 'a\377\000b'; printf '\376' >&2; printf x >> ran";
    let call = ["once", "x", "--", "sh", "-c", script];
    let shell = |file: &str| {
        let line = format!("\"$@\" > {file}.out 2> {file}.err");
        let outer_lock = ["run", "around", "--", "sh", "-c", &line, "sh", PROGRAM];
        sandbox.run(&[&outer_lock[..], &call].concat()).succeeds();
        let read = |end: &str| std::fs::read(sandbox.path(&format!("{file}.{end}"))).unwrap();
        (read("out"), read("err"))
    };
    let first = shell("first");
    assert_eq!(first, (b"a\xff\0b".to_vec(), vec![0xfe]));
    assert_eq!(shell("again"), first);
    assert_eq!(sandbox.lines_in("ran"), ["x"]);
}
