use crate::step::{cargo, step, succeed};
use crate::workspace::Workspace;

/// Applies what clippy can mend by itself, then formats.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    step("clippy --fix", || {
        let arguments = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--fix",
            // The tree of somebody at work is never clean; version control has the old text.
            "--allow-dirty",
            "--allow-staged",
        ];
        succeed(&mut cargo(workspace, &arguments))
    })?;
    step("format", || {
        succeed(&mut cargo(workspace, &["fmt", "--all"]))
    })
}
