//! Calls by a user who may not do everything.

use std::process::Command;

use crate::harness::{Ended, PROGRAM, Sandbox};

/// Runs the copy of the program: as `nobody`, unless we are a plain user ourselves.
pub(crate) fn run(sandbox: &Sandbox, args: &[&str]) -> Ended {
    let mut command = if nix::unistd::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg("tools/leasehold");
        command
    } else {
        Command::new("tools/leasehold")
    };
    sandbox.furnish(&mut command);
    command.args(args);
    sandbox.spawn(command).wait()
}

/// A copy of the program for [`run`], as the program itself may lie where only we may look.
pub(crate) fn copy_program(sandbox: &Sandbox) {
    let mut copy = Command::new("install");
    let to = sandbox.path("tools/leasehold");
    copy.args(["-D", "-m", "755", PROGRAM]).arg(to);
    assert!(copy.status().unwrap().success());
}
