use crate::step::{answer, cargo};
use crate::workspace::Workspace;

/// What each crate may depend on in this workspace, apart from its tests.
const LAYERS: [(&str, &[&str]); 13] = [
    ("leasehold-types", &[]),
    ("leasehold", &["leasehold-types"]),
    ("leasehold-quorum", &["leasehold-types"]),
    ("leasehold-file", &["leasehold"]),
    ("leasehold-credentials", &["leasehold"]),
    ("leasehold-etcd", &["leasehold", "leasehold-credentials"]),
    (
        "leasehold-postgres",
        &["leasehold", "leasehold-credentials"],
    ),
    (
        "leasehold-redis",
        &["leasehold", "leasehold-credentials", "leasehold-quorum"],
    ),
    (
        "leasehold-zookeeper",
        &["leasehold", "leasehold-credentials"],
    ),
    ("leasehold-testkit", &["leasehold"]),
    ("leasehold-fakeredis", &[]),
    (
        "leasehold-stores",
        &[
            "leasehold",
            "leasehold-etcd",
            "leasehold-file",
            "leasehold-postgres",
            "leasehold-redis",
            "leasehold-zookeeper",
        ],
    ),
    (
        "leasehold-cli",
        &[
            "leasehold",
            "leasehold-etcd",
            "leasehold-file",
            "leasehold-postgres",
            "leasehold-redis",
            "leasehold-stores",
            "leasehold-zookeeper",
        ],
    ),
];

/// Crates with all of their dependencies: the engine does no I/O, and its tests and xtask build quickly.
const CLOSED: [(&str, &[&str]); 3] = [
    ("leasehold-types", &["humantime", "serde"]),
    (
        "leasehold-quorum",
        &["leasehold-types", "foldhash", "typed-index-collections"],
    ),
    ("xtask", &["proc-macro2"]),
];

/// Returns the dependencies that the layers forbid, as Cargo resolves them.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let words =
        "tree --workspace --edges normal,build --depth 1 --prefix depth --no-dedupe --locked";
    let tree = answer(&mut cargo(workspace, words));
    let tree = tree.ok_or_else(|| format!("`cargo {words}` failed"))?;
    Ok(violations(&tree))
}

fn violations(tree: &str) -> Vec<String> {
    let (mut found, mut seen, mut dependent) = (Vec::new(), Vec::new(), "");
    for line in tree.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        if let Some(name) = name.strip_prefix('0') {
            dependent = name;
            seen.push(name);
        } else if let Some(name) = name.strip_prefix('1') {
            let layer = LAYERS
                .iter()
                .find(|(of, _)| *of == dependent && name.starts_with("leasehold"));
            let closed = CLOSED.iter().find(|(of, _)| *of == dependent);
            if layer
                .into_iter()
                .chain(closed)
                .any(|(_, allowed)| !allowed.contains(&name))
            {
                found.push(format!(
                    "{dependent} may not depend on {name} (xtask/src/lint/layers.rs)"
                ));
            }
        }
    }
    let listed = LAYERS.iter().chain(&CLOSED).map(|(name, _)| name);
    let gone = listed.filter(|name| !seen.contains(name));
    found.extend(
        gone.map(|name| format!("{name} is in xtask/src/lint/layers.rs but not in the workspace")),
    );
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_dependencies_are_reported() {
        let all: String = LAYERS
            .iter()
            .chain(&CLOSED)
            .map(|(name, _)| format!("0{name} v0.1.0\n"))
            .collect();
        let with =
            |of: &str, on: &str| violations(&format!("{all}0{of} v0.1.0 (/x)\n1{on} v1.0.0\n"));
        for (of, on) in [
            ("leasehold", "tokio"),
            ("leasehold-redis", "leasehold-quorum"),
            ("leasehold-simulation", "leasehold-redis"),
        ] {
            assert!(with(of, on).is_empty(), "{of} on {on}");
        }
        for (of, on) in [
            ("leasehold", "leasehold-file"),
            ("leasehold-quorum", "leasehold"),
            ("leasehold-types", "tokio"),
            ("leasehold-redis", "leasehold-testkit"),
            ("xtask", "serde"),
        ] {
            assert_eq!(with(of, on).len(), 1, "{of} on {on}");
        }
    }

    #[test]
    fn crates_that_are_gone_are_reported() {
        assert_eq!(violations("").len(), LAYERS.len() + CLOSED.len());
    }
}
