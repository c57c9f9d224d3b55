use std::path::PathBuf;

use crate::unpack::unpack_packages;
use crate::workspace::Workspace;

/// The packages of Debian and Ubuntu with the server, with Curator, and with what both need. None of them is installed:
/// their files are unpacked under the target folder.
const PACKAGES: [&str; 11] = [
    "libcommons-cli-java",
    "libcommons-io-java",
    "libcurator-client-java",
    "libcurator-framework-java",
    "libcurator-recipes-java",
    "libdropwizard-metrics-java",
    "libguava-java",
    "libnetty-java",
    "libslf4j-java",
    "libsnappy-java",
    "libzookeeper-java",
];

/// Where to get the files without these packages.
pub(crate) const ADVICE: &str = "  ZooKeeper: the tests start their own servers; `cargo xtask setup` unpacks the packages of \
     Debian or Ubuntu under the target folder. Elsewhere, LEASEHOLD_TEST_ZOOKEEPER names a folder with the jars.";

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("test-zookeeper")
}

/// The folder with the jars.
pub(crate) fn jars(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("usr/share/java")
}

/// Whether the files are there.
pub(crate) fn is_ready(workspace: &Workspace) -> bool {
    let named = std::env::var_os("LEASEHOLD_TEST_ZOOKEEPER").map(PathBuf::from);
    let jars = named.unwrap_or_else(|| jars(workspace));
    ["zookeeper.jar", "curator-recipes.jar"]
        .iter()
        .all(|jar| jars.join(jar).exists())
}

/// Unpacks the packages.
pub(crate) fn unpack(workspace: &Workspace) -> Result<(), String> {
    unpack_packages(&folder(workspace), &PACKAGES)
}
