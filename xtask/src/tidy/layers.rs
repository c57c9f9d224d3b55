use super::Offence;
use super::source::Source;

/// Which crate may depend on which. The core and the engine know no store, a store knows the core, the Redis store
/// the engine too, the testkit is for tests, and the command line and the simulation know all.
pub(crate) fn check(tree: &[Source]) -> Vec<Offence> {
    tree.iter()
        .filter(|source| source.path.ends_with("Cargo.toml"))
        .flat_map(manifest)
        .collect()
}

fn manifest(source: &Source) -> Vec<Offence> {
    let own = source.crate_name();
    dependencies(&source.text)
        .into_iter()
        .filter_map(|dependency| {
            let rule = refusal(own, &dependency)?;
            Some(Offence::at(&source.path, dependency.line, rule))
        })
        .collect()
}

fn refusal(own: &str, dependency: &Dependency) -> Option<String> {
    let name = dependency.package.as_str();
    if own == "xtask" {
        return Some(format!("xtask builds from nothing, not from {name}"));
    }
    let is_pure = matches!(name, "leasehold" | "foldhash");
    if own == "leasehold-quorum" && !is_pure && dependency.kind == Kind::Normal {
        return Some(format!(
            "the engine does no I/O and knows the core and a hash only, not {name}"
        ));
    }
    if !name.starts_with("leasehold") || own == "leasehold-cli" || own == "bench" {
        let testkit_ships = name == "leasehold-testkit" && dependency.kind == Kind::Normal;
        return (testkit_ships && own != "bench")
            .then(|| "leasehold-testkit is a dev-dependency only".to_owned());
    }
    match (own, name, dependency.kind) {
        ("leasehold", "leasehold-testkit", Kind::Dev) => None,
        ("leasehold", _, _) => Some(format!("the core knows no store, and so not {name}")),
        ("leasehold-fakeredis", "leasehold" | "leasehold-testkit", Kind::Dev) => None,
        ("leasehold-fakeredis", _, _) => Some(format!(
            "the fake server knows nothing of locks, and so not {name}"
        )),
        (_, "leasehold", _) => None,
        ("leasehold-redis", "leasehold-quorum", _)
        | ("leasehold-redis", "leasehold-fakeredis", Kind::Dev)
        | ("leasehold-simulation", _, _) => None,
        // It compiles the README's examples, which belong to no crate alone.
        ("leasehold-testkit", _, Kind::Dev) => None,
        ("leasehold-testkit", _, _) => {
            Some(format!("the testkit serves {name}, not depends on it"))
        }
        (_, "leasehold-testkit", Kind::Dev) => None,
        (_, "leasehold-testkit", _) => Some("leasehold-testkit is a dev-dependency only".into()),
        _ => Some(format!("a store knows the core only, and so not {name}")),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Normal,
    Dev,
    Build,
}

#[derive(Debug, PartialEq, Eq)]
struct Dependency {
    package: String,
    kind: Kind,
    line: usize,
}

/// Returns the dependencies of a manifest. It understands the TOML that our manifests use: one dependency
/// per line or per table. A renamed dependency counts under its real name.
fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found: Vec<Dependency> = Vec::new();
    let mut section = Section::Other;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix('[') {
            section = Section::named(name.trim_end_matches(']'));
            if let Section::One(kind, package) = &section {
                found.push(Dependency {
                    package: package.clone(),
                    kind: *kind,
                    line: index + 1,
                });
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        match &section {
            Section::Table(kind) => found.push(Dependency {
                package: renamed(value).unwrap_or_else(|| bare(key)),
                kind: *kind,
                line: index + 1,
            }),
            Section::One(..) if key.trim() == "package" => {
                if let Some(last) = found.last_mut() {
                    last.package = value.trim().trim_matches('"').to_owned();
                }
            }
            _ => {}
        }
    }
    found
}

/// `tokio.workspace` and `"tokio"` are both `tokio`.
fn bare(key: &str) -> String {
    let name = key.trim().split('.').next().unwrap_or_default();
    name.trim_matches('"').to_owned()
}

fn renamed(value: &str) -> Option<String> {
    let (_, after) = value.split_once("package")?;
    let name = after.trim_start().strip_prefix('=')?.trim_start();
    name.strip_prefix('"')?.split('"').next().map(str::to_owned)
}

enum Section {
    /// `[dependencies]`
    Table(Kind),
    /// `[dependencies.name]`
    One(Kind, String),
    Other,
}

impl Section {
    fn named(name: &str) -> Self {
        // `target.'cfg(unix)'.dependencies` and `workspace.dependencies`: the last of them names
        // no dependency of this crate.
        if name.starts_with("workspace") {
            return Self::Other;
        }
        for (word, kind) in [
            ("dev-dependencies", Kind::Dev),
            ("build-dependencies", Kind::Build),
            ("dependencies", Kind::Normal),
        ] {
            if name == word || name.ends_with(&format!(".{word}")) {
                return Self::Table(kind);
            }
            let table = name
                .rsplit_once('.')
                .filter(|(table, _)| *table == word || table.ends_with(&format!(".{word}")));
            if let Some((_, package)) = table {
                return Self::One(kind, bare(package));
            }
        }
        Self::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offences(name: &str, manifest: &str) -> Vec<String> {
        let source = Source::new(&format!("crates/{name}/Cargo.toml"), manifest.into());
        let found = check(&[source]);
        found.into_iter().map(|offence| offence.rule).collect()
    }

    #[test]
    fn engine_depends_on_the_core_only() {
        let core = "[dependencies]\nleasehold.workspace = true\n";
        assert!(offences("leasehold-quorum", core).is_empty());
        for other in ["leasehold-redis", "tokio"] {
            let manifest = format!("[dependencies]\n{other}.workspace = true\n");
            let rule =
                format!("the engine does no I/O and knows the core and a hash only, not {other}");
            assert_eq!(offences("leasehold-quorum", &manifest), [rule]);
        }
        let engine = "[dependencies]\nleasehold-quorum.workspace = true\n";
        assert!(offences("leasehold-redis", engine).is_empty());
        assert_eq!(offences("leasehold-file", engine).len(), 1);
    }

    #[test]
    fn the_core_knows_no_store() {
        let manifest = "[dependencies]\ntokio.workspace = true\nleasehold-file.workspace = true\n";
        assert_eq!(
            offences("leasehold", manifest),
            ["the core knows no store, and so not leasehold-file"]
        );
        let testkit = "[dev-dependencies]\nleasehold-testkit = { path = \"../x\" }\n";
        assert!(offences("leasehold", testkit).is_empty());
        let shipped = "[dependencies]\nleasehold-testkit.workspace = true\n";
        assert_eq!(offences("leasehold", shipped).len(), 1);
    }

    #[test]
    fn a_store_knows_the_core_only_under_whatever_name() {
        let core = "[dependencies]\nleasehold.workspace = true\nredis = \"1\"\n";
        assert!(offences("leasehold-redis", core).is_empty());
        for other in [
            "[dependencies]\nleasehold-file.workspace = true\n",
            "[dev-dependencies]\nleasehold-file.workspace = true\n",
            "[dependencies]\nfiles = { package = \"leasehold-file\", path = \"..\" }\n",
            "[dependencies.leasehold-file]\npath = \"..\"\n",
            "[dependencies.files]\npackage = \"leasehold-file\"\n",
            "[target.'cfg(unix)'.dependencies]\nleasehold-file.workspace = true\n",
        ] {
            assert_eq!(
                offences("leasehold-redis", other),
                ["a store knows the core only, and so not leasehold-file"],
                "{other}"
            );
        }
    }

    #[test]
    fn the_testkit_is_for_tests() {
        let shipped = "[dependencies]\nleasehold-testkit.workspace = true\n";
        let dev = "[dev-dependencies]\nleasehold-testkit.workspace = true\n";
        for name in ["leasehold-redis", "leasehold-cli"] {
            assert_eq!(
                offences(name, shipped),
                ["leasehold-testkit is a dev-dependency only"]
            );
            assert!(offences(name, dev).is_empty());
        }
        let store = "[dependencies]\nleasehold-redis.workspace = true\n";
        assert_eq!(offences("leasehold-testkit", store).len(), 1);
        assert!(offences("leasehold-cli", store).is_empty());
    }

    #[test]
    fn xtask_depends_on_nothing() {
        let source = Source::new("xtask/Cargo.toml", "[dependencies]\nserde = \"1\"\n".into());
        assert_eq!(check(&[source]).len(), 1);
        let features = "[features]\nleasehold-file = []\n[workspace.dependencies]\nx = \"1\"\n";
        let source = Source::new("xtask/Cargo.toml", features.into());
        assert!(check(&[source]).is_empty());
    }
}
