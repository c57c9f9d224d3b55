use crate::Failure;
use crate::step::{cargo, succeed};
use crate::workspace::Workspace;

/// Builds the simulator and runs it.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let mut simulation = cargo(
        workspace,
        &[
            "run",
            "--quiet",
            "--locked",
            "--release",
            "--package",
            "leasehold-simulation",
            "--bin",
            "sim",
            "--",
        ],
    );
    Ok(succeed(simulation.args(arguments))?)
}
