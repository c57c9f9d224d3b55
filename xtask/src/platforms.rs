//! Compiles the libraries for systems that run no tests.

use crate::package::{Zig, add_target};
use crate::step::{step, succeed};
use crate::workspace::Workspace;

const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-windows-gnu"];

/// The crates for all systems. The file store and the command are for Linux.
const CRATES: [&str; 9] = [
    "leasehold-types",
    "leasehold",
    "leasehold-quorum",
    "leasehold-credentials",
    "leasehold-redis",
    "leasehold-postgres",
    "leasehold-etcd",
    "leasehold-zookeeper",
    "leasehold-testkit",
];

/// Compiles the libraries for macOS and Windows. Nothing is linked, since the libraries of these systems are not here.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let zig = Zig::of(workspace);
    step("tools", || {
        zig.install()?;
        TARGETS.iter().try_for_each(|target| add_target(target))
    })?;
    for target in TARGETS {
        step(target, || {
            let mut check = zig.cargo_zigbuild(workspace, "check --locked");
            check
                .args(["--target", target])
                .env("RUSTFLAGS", "-D warnings");
            check.args(CRATES.iter().flat_map(|name| ["--package", name]));
            succeed(&mut check)
        })?;
    }
    Ok(())
}
