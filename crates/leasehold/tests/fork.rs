//! A forked child of a holder holds nothing, frees nothing, and is told so.
#![expect(
    unsafe_code,
    reason = "fork itself; the child only uses the library and leaves"
)]

use std::time::Duration;

use leasehold::background::Thread;
use leasehold::{Client, Error, ErrorKind, FenceGate, LostReason, MemoryStore};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

/// What the child sees; the first thing that is wrong is its exit code.
fn in_the_child(client: Client, guard: leasehold::Guard, thread: Thread) -> i32 {
    let is_forked = |error: Error| error.kind() == ErrorKind::Forked;
    let checks = [
        !guard.is_valid(),
        guard.remaining() == Duration::ZERO,
        guard.ensure(Duration::ZERO).is_err_and(is_forked),
        pollster::block_on(guard.lost()) == LostReason::Forked,
        pollster::block_on(client.lock("y").try_acquire()).is_err_and(is_forked),
        pollster::block_on(client.lock("x").acquire()).is_err_and(is_forked),
        pollster::block_on(client.holders("x")).is_err_and(is_forked),
        pollster::block_on(guard.share().release()).is_err_and(is_forked),
        pollster::block_on(guard.claim(&FenceGate::new())).is_err_and(is_forked),
        pollster::block_on(thread.run(async {})).is_err_and(is_forked),
    ];
    drop(thread);
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
    let client = Client::new(MemoryStore::new());
    let guard = pollster::block_on(client.lock("x").acquire()).unwrap();
    let thread = Thread::start().unwrap();
    // SAFETY: the child uses its copy of the memory, which no other thread of it can change, and
    // leaves by _exit.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let code = in_the_child(client, guard, thread);
            // SAFETY: ends the child without running the test harness's own end.
            unsafe { nix::libc::_exit(code) }
        }
        ForkResult::Parent { child } => {
            let status = waitpid(child, None).unwrap();
            assert_eq!(
                status,
                WaitStatus::Exited(child, 0),
                "the number of what went wrong"
            );
            assert!(guard.is_valid(), "the child's drop freed nothing");
            let held = pollster::block_on(client.lock("x").try_acquire()).unwrap();
            assert!(held.is_none());
            assert_eq!(pollster::block_on(thread.run(async { 7 })).unwrap(), 7);
            pollster::block_on(guard.release()).unwrap();
        }
    }
}
