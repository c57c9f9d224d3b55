use crate::Failure;
use crate::setup;
use crate::step::{cargo, succeed};
use crate::suite;
use crate::workspace::Workspace;

/// Breaks servers, networks, and processes under a lock for the requested time, and prints the results.
/// The program that does this knows its own arguments.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let without_python = ["redis-py".to_owned()];
    setup::run(workspace, &without_python)?;
    let mut faults = cargo(
        workspace,
        &[
            "test",
            "--quiet",
            "--package",
            "leasehold-redis",
            "--test",
            "faults",
            "--",
            "soak",
        ],
    );
    suite::equip(&mut faults, workspace)?;
    Ok(succeed(faults.args(arguments))?)
}
