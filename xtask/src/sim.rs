use crate::Failure;
use crate::step::{cargo, succeed};
use crate::workspace::Workspace;

/// Builds the simulation, optimized but with all its checks, and runs it.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let mut simulation = cargo(
        workspace,
        &[
            "run",
            "--quiet",
            "--profile",
            "sim",
            "--package",
            "leasehold-testkit",
            "--bin",
            "leasehold-sim",
            "--",
        ],
    );
    Ok(succeed(simulation.args(arguments))?)
}
