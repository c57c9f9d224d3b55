use crate::step::{cargo, step, succeed};
use crate::workspace::Workspace;

/// Applies the fixes of clippy, then formats.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    step("clippy --fix", || {
        let arguments = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--fix",
            // During work the tree is never clean, and version control has the old text.
            "--allow-dirty",
            "--allow-staged",
        ];
        succeed(&mut cargo(workspace, &arguments))
    })?;
    step("format", || {
        succeed(&mut cargo(workspace, &["fmt", "--all"]))
    })
}
