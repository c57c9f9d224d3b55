//! A forked child of a holder holds nothing, frees nothing, and gets errors that say so.
#![expect(
    unsafe_code,
    reason = "fork itself; the child only uses the library and leaves"
)]

use std::process::Command;
use std::time::Duration;

use leasehold::fencing::FenceGate;
use leasehold::memory::MemoryStore;
use leasehold::{Client, Error, ErrorKind, LostReason};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

/// What the child sees; the first thing that is wrong is its exit code.
fn in_the_child(client: Client, guard: leasehold::Guard) -> i32 {
    let is_forked = |error: Error| error.kind() == ErrorKind::Forked;
    let checks = [
        !guard.is_valid(),
        guard.remaining() == Duration::ZERO,
        guard.ensure(Duration::ZERO).is_err_and(is_forked),
        pollster::block_on(guard.lost()) == LostReason::Forked,
        pollster::block_on(client.lock("y").try_acquire()).is_err_and(is_forked),
        pollster::block_on(client.lock("x").acquire()).is_err_and(is_forked),
        pollster::block_on(client.holders("x")).is_err_and(is_forked),
        pollster::block_on(guard.reenter().release()).is_err_and(is_forked),
        pollster::block_on(guard.fence_off(&FenceGate::new())).is_err_and(is_forked),
    ];
    drop(guard);
    drop(client);
    let own = Client::new(MemoryStore::new());
    let works = pollster::block_on(own.lock("z").try_acquire()).is_ok_and(|guard| guard.is_some());
    match checks.iter().position(|check| !check) {
        Some(wrong) => wrong as i32 + 1,
        None if !works => 100,
        None => 0,
    }
}

#[test]
fn a_forked_child_holds_and_frees_nothing() {
    fork_a_holder(|| ());
}

fn fork_a_holder(before_fork: impl FnOnce()) {
    let client = Client::new(MemoryStore::new());
    let guard = pollster::block_on(client.lock("x").acquire()).expect("a grant");
    before_fork();
    // SAFETY: the child uses its copy of the memory, which no other thread of it can change, and
    // leaves by _exit.
    match unsafe { fork() }.expect("a child") {
        ForkResult::Child => {
            let code = in_the_child(client, guard);
            // SAFETY: ends the child without running the test harness's own end.
            unsafe { nix::libc::_exit(code) }
        }
        ForkResult::Parent { child } => {
            let status = waitpid(child, None).expect("an answer");
            assert_eq!(
                status,
                WaitStatus::Exited(child, 0),
                "the number of what went wrong"
            );
            assert!(guard.is_valid(), "the child's drop freed nothing");
            let held = pollster::block_on(client.lock("x").try_acquire()).expect("an answer");
            assert!(held.is_none());
            pollster::block_on(guard.release()).expect("an answer");
        }
    }
}

/// Unlike `fork`, this runs no handlers of the C library.
#[test]
fn cloned_child_is_forked_too() {
    let client = Client::new(MemoryStore::new());
    let guard = pollster::block_on(client.lock("x").acquire()).expect("a grant");
    assert!(guard.is_valid());
    // SAFETY: the child has its own copy of the memory, as after a fork, and leaves by _exit.
    let child = unsafe { nix::libc::syscall(nix::libc::SYS_clone, nix::libc::SIGCHLD, 0, 0, 0, 0) };
    if child == 0 {
        let code = i32::from(guard.is_valid());
        // SAFETY: ends the child without running the test harness's own end.
        unsafe { nix::libc::_exit(code) }
    }
    let child = nix::unistd::Pid::from_raw(i32::try_from(child).unwrap());
    let status = waitpid(child, None).expect("an answer");
    assert_eq!(
        status,
        WaitStatus::Exited(child, 0),
        "1: the child holds the lock"
    );
    assert!(guard.is_valid());
}

/// The parent is the first process of its PID namespace, the child that of another one: both are pid 1.
#[test]
#[ignore = "needs a PID namespace: `child_that_is_pid_1_too_is_forked` runs it"]
fn inner() {
    assert_eq!(std::process::id(), 1);
    // The thread can start no other threads afterwards.
    fork_a_holder(|| {
        // SAFETY: a system call that concerns only the children of this thread.
        let unshared = unsafe { nix::libc::unshare(nix::libc::CLONE_NEWPID) };
        nix::errno::Errno::result(unshared).unwrap();
    });
}

#[test]
fn child_that_is_pid_1_too_is_forked() {
    let in_namespace = |flags: &[&str], program: &str, args: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare
            .args(flags)
            .args(["--pid", "--fork", "--kill-child"]);
        unshare.arg(program).args(args).output()
    };
    let is_possible = |flags: &&&[&str]| {
        let tried = in_namespace(flags, "true", &[]);
        tried.is_ok_and(|output| output.status.success())
    };
    // Without a user namespace it takes root.
    let ways: [&[&str]; 2] = [&["--user", "--map-root-user"], &[]];
    let Some(flags) = ways.iter().find(is_possible) else {
        panic!(
            "this test needs a PID namespace, and the system allows none (unshare --user --pid)"
        );
    };
    let tests = std::env::current_exe().unwrap();
    let args = ["--exact", "inner", "--ignored", "--nocapture"];
    let output = in_namespace(flags, tests.to_str().unwrap(), &args).unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}
