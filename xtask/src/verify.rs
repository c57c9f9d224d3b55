use crate::Failure;
use crate::setup;
use crate::step::{cargo, step, succeed};
use crate::suite;
use crate::tidy;
use crate::workspace::Workspace;

/// The gate: everything that must hold before a change is merged. It changes no file of the
/// tree: `--locked` keeps even Cargo.lock as it is. The quick steps come first.
pub(crate) fn run(workspace: &Workspace, skipped: &[String]) -> Result<(), Failure> {
    setup::check(workspace, skipped)?;
    tidy::run(workspace)?;
    step("format", || {
        succeed(&mut cargo(workspace, &["fmt", "--all", "--check"]))
    })?;
    step("clippy", || {
        let mut clippy = cargo(
            workspace,
            &["clippy", "--workspace", "--all-targets", "--locked"],
        );
        succeed(clippy.args(["--", "-D", "warnings"]))
    })?;
    step("docs", || {
        let mut doc = cargo(workspace, &["doc", "--workspace", "--no-deps", "--locked"]);
        succeed(doc.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    step("tests", || suite::run(workspace, skipped))?;
    println!("verify: everything holds");
    Ok(())
}
