use crate::Failure;
use crate::step::{cargo, succeed};
use crate::workspace::Workspace;

/// Builds the simulation and runs it.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let mut simulation = cargo(
        workspace,
        &[
            "run",
            "--quiet",
            "--package",
            "leasehold-testkit",
            "--bin",
            "leasehold-sim",
            "--",
        ],
    );
    Ok(succeed(simulation.args(arguments))?)
}
