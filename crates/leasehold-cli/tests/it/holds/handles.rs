//! Locks that are held between the commands of a script, on each store with leases.

use std::io::{self, Write as _};
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};

use crate::holds::hold::is_busy;
use crate::support::harness::Sandbox;
use crate::support::program::Ended;
use crate::support::stores::{TestStore, on_stores};

pub(crate) fn with_handle(sandbox: &Sandbox, handle: &str, args: &str) -> Ended {
    sandbox
        .start_with(("LEASEHOLD_HANDLE", handle), args)
        .wait()
}

fn on_stdin(sandbox: &Sandbox, handle: &str, args: &str) -> Ended {
    let (reader, mut writer) = io::pipe().unwrap();
    let mut command = sandbox.leasehold();
    command.args(args.split(' ')).stdin(reader);
    let running = sandbox.spawn(command);
    writer.write_all(handle.as_bytes()).unwrap();
    drop(writer);
    running.wait()
}

/// What the command printed: one line.
#[track_caller]
pub(crate) fn line(ended: &Ended) -> &str {
    assert_eq!(ended.code(), 0, "{ended:?}");
    let line = ended.stdout.strip_suffix('\n').unwrap();
    assert!(!line.contains('\n'), "{ended:?}");
    line
}

on_stores!(handle_holds_a_lock_without_a_process: redis redis_quorum postgres etcd);

fn handle_holds_a_lock_without_a_process(sandbox: &TestStore) {
    let acquired = sandbox.run("acquire --ttl 10s x");
    let first = line(&acquired);
    assert!(first.starts_with("lh1_") && first.len() > 100, "{first}");
    assert!(is_busy(sandbox));
    sandbox.run("acquire -n x").fails(75, &["held by"]);
    let renewed = with_handle(sandbox, first, "renew");
    assert_eq!(renewed.stderr, "", "all members answer");
    let second = line(&renewed);
    assert!(second.starts_with("lh1_") && second != first);
    let renewed = on_stdin(sandbox, &format!("{second}\n"), "renew --ttl 20s");
    let third = line(&renewed);
    assert!(is_busy(sandbox));
    let waiter = sandbox.start("run -v -w 40s x true");
    waiter.says("1st in the queue");
    // Any of them frees the lock, and only once.
    let released = SystemClock.now();
    assert_eq!(with_handle(sandbox, second, "release").stdout, "");
    waiter.wait().succeeds();
    let handed_over = SystemClock.now().since(released);
    assert!(handed_over < Duration::from_secs(15), "{handed_over:?}");
    assert!(!is_busy(sandbox));
    let again = on_stdin(sandbox, third, "release");
    again.fails(76, &["\"x\" was no longer held by this handle"]);
    with_handle(sandbox, third, "renew").fails(76, &["lost", "x"]);
    assert!(!again.stderr.contains(third));
}
