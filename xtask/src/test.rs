use crate::Failure;
use crate::setup;
use crate::step::step;
use crate::suite;
use crate::workspace::Workspace;

/// Installs what the tests need, then runs them all.
pub(crate) fn run(workspace: &Workspace, skipped: &[String]) -> Result<(), Failure> {
    setup::run(workspace, skipped)?;
    step("tests", || suite::run(workspace, skipped))?;
    Ok(())
}
