use super::Offence;
use super::source::Source;

/// Checks that every crate uses the lints of the workspace, and that no library has its own `clippy.toml`,
/// which would override the list of disallowed methods.
pub(crate) fn check(tree: &[Source]) -> Vec<Offence> {
    let manifests = tree
        .iter()
        .filter(|source| source.path.ends_with("Cargo.toml"))
        .filter(|source| !inherits(&source.text))
        .map(|source| Offence::at(&source.path, 0, "`[lints] workspace = true` is missing"));
    let configurations = tree
        .iter()
        .filter(|source| source.path.ends_with("/clippy.toml"))
        .filter(|source| source.crate_name() != "leasehold-cli")
        .map(|source| {
            let rule = "a clippy.toml replaces the workspace's: the command line alone has one";
            Offence::at(&source.path, 0, rule)
        });
    manifests.chain(configurations).collect()
}

fn inherits(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim);
    lines.any(|line| line == "[lints]") && lines.next() == Some("workspace = true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offences(path: &str, text: &str) -> usize {
        check(&[Source::new(path, text.into())]).len()
    }

    #[test]
    fn each_crate_has_the_lints_of_the_workspace() {
        let path = "crates/leasehold-x/Cargo.toml";
        assert_eq!(
            offences(path, "[package]\n\n[lints]\nworkspace = true\n"),
            0
        );
        assert_eq!(offences(path, "[package]\n"), 1);
        assert_eq!(offences(path, "[lints.clippy]\nworkspace = true\n"), 1);
        assert_eq!(offences(path, "[lints]\n[features]\nworkspace = true\n"), 1);
    }

    #[test]
    fn a_library_has_no_configuration_of_its_own() {
        assert_eq!(offences("crates/leasehold-file/clippy.toml", ""), 1);
        assert_eq!(offences("crates/leasehold-cli/clippy.toml", ""), 0);
    }
}
