//! Calls by an unprivileged user.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::harness::{PROGRAM, Sandbox};
use crate::support::program::{Arguments, Ended, sh};

/// Runs the copy of the program. If this test runs as root, the copy runs as an unprivileged user.
pub(crate) fn run<A: Arguments + ?Sized>(sandbox: &Sandbox, args: &A) -> Ended {
    let mut command = if nix::unistd::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg("tools/leasehold");
        command
    } else {
        Command::new("tools/leasehold")
    };
    sandbox.furnish(&mut command);
    command
        .env("LEASEHOLD_STORE", sandbox.store())
        .args(args.list());
    sandbox.spawn(command).wait()
}

/// A lock folder that all users may write to, like `/tmp`: each user may remove only their own files.
/// Without root there is only one user. The test reports that on the real stderr.
fn shared_folder() -> Sandbox {
    if !nix::unistd::geteuid().is_root() {
        let notice = "NOT TESTED: a second user, because the tests do not run as root";
        // The test runner captures only what macros print.
        let mut stderr = io::stderr();
        writeln!(stderr, "{notice}").unwrap();
    }
    let sandbox = Sandbox::new();
    copy_program(&sandbox);
    fs::create_dir(sandbox.path("locks")).unwrap();
    for (path, mode) in [(".", 0o777), ("locks", 0o1777)] {
        fs::set_permissions(sandbox.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    sandbox
}

#[test]
fn unwritable_lock_folder_is_77() {
    let sandbox = shared_folder();
    let folder = sandbox.path("locks");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let ended = run(&sandbox, "run x true");
    ended.fails(77, &[&folder.display().to_string()]);
}

#[test]
fn a_result_is_shared_by_two_users() {
    let sandbox = shared_folder();
    let call = sh("once x", "echo x >> ran; test -e ready && echo done");
    fs::write(sandbox.path("ran"), "").unwrap();
    let all = fs::Permissions::from_mode(0o666);
    fs::set_permissions(sandbox.path("ran"), all).unwrap();
    // What the first user leaves, the second one must replace.
    assert_eq!(sandbox.run(&call).code(), 1);
    fs::write(sandbox.path("ready"), "").unwrap();
    for ended in [run(&sandbox, &call), sandbox.run(&call)] {
        assert_eq!((ended.code(), &*ended.stdout), (0, "done\n"), "{ended:?}");
    }
    assert_eq!(sandbox.lines_in("ran").len(), 2);
    let names = fs::read_dir(sandbox.path("locks")).unwrap();
    assert_eq!(names.count(), 2, "a lock file and its record");
}

#[test]
fn two_users_lead_one_after_the_other() {
    let sandbox = shared_folder();
    let lead = "elect x -- true";
    for ended in [sandbox.run(lead), run(&sandbox, lead), sandbox.run(lead)] {
        assert_eq!((ended.code(), &*ended.stderr), (0, ""), "{ended:?}");
    }
}

/// Makes a copy of the program for [`run`], since the program itself may be in a private folder.
pub(crate) fn copy_program(sandbox: &Sandbox) {
    let mut copy = Command::new("install");
    let to = sandbox.path("tools/leasehold");
    copy.args(["-D", "-m", "755", PROGRAM]).arg(to);
    assert!(copy.status().unwrap().success());
}
