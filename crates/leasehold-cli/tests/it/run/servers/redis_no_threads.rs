//! A system that has no room for another thread.

use std::io::{self, Write as _};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::unistd::geteuid;

use crate::nobody::copy_program;
use crate::support::harness::Sandbox;

/// Runs the program in a sandbox that a user of its own may write to, with room for this many threads and
/// processes.
fn assert_no_panic(sandbox: &Sandbox, user: u32, room: u32) {
    let mut command = Command::new("prlimit");
    command.arg(format!("--nproc={room}:{room}"));
    command.arg("setpriv");
    let ids = [format!("--reuid={user}"), format!("--regid={user}")];
    command.args(ids).arg("--clear-groups");
    command.arg("tools/leasehold");
    sandbox.furnish(&mut command);
    command.env("LEASEHOLD_STORE", sandbox.store());
    command.args(["run", "--ttl", "3s", "-w", "3s", "x", "true"]);
    let ended = sandbox.spawn(command).wait();
    assert!(!ended.stderr.contains("panicked"), "{room}: {ended:?}");
    match ended.code() {
        0 => assert!(room > 1, "{ended:?}"),
        125 => assert!(!ended.stderr.is_empty(), "{room}: {ended:?}"),
        // Each connection to a name needs a thread for a moment.
        69 => assert!(sandbox.store().contains("localhost"), "{room}: {ended:?}"),
        _ => panic!("{room}: {ended:?}"),
    }
}

fn assert_error_without_room(sandbox: &Sandbox) {
    if !geteuid().is_root() {
        let notice = "NOT TESTED: a limit of threads, because the tests do not run as root";
        // The test runner captures only what macros print.
        let mut stderr = io::stderr();
        writeln!(stderr, "{notice}").unwrap();
        return;
    }
    copy_program(sandbox);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(sandbox.path("."), open).unwrap();
    // No other process has this user.
    static USERS: AtomicU32 = AtomicU32::new(0);
    let user =
        10_000 + std::process::id() % 10_000 + 10_000 * USERS.fetch_add(1, Ordering::Relaxed);
    for room in 1..=6 {
        assert_no_panic(sandbox, user, room);
    }
}

#[test]
fn files_without_threads_are_an_error() {
    assert_error_without_room(&Sandbox::new());
}

#[test]
fn redis_without_threads_is_an_error() {
    let (sandbox, _server) = Sandbox::on_redis();
    assert_error_without_room(&sandbox);
}

#[test]
fn redis_by_name_without_threads_is_an_error() {
    let (sandbox, server) = Sandbox::on_redis();
    drop(sandbox);
    let by_name = format!("redis://localhost:{}", server.port());
    assert_error_without_room(&Sandbox::on(&[by_name]));
}
