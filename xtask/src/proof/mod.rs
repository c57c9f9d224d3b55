//! The proof of the random programs: known bugs are put back one by one, and the programs must find each of them.
//!
//! A bug is a few altered lines of the product. The list says which promise it breaks, so the time until a program breaks one
//! measures how good the programs and their checker are.

mod bug;
mod memory_and_file;
mod other_servers;
mod redis;
mod search;

use std::path::Path;

use crate::mutants::check_out;
use crate::workspace::Workspace;
use bug::Bug;
use search::Found;

/// Returns all bugs, by store.
fn bugs() -> impl Iterator<Item = &'static Bug> {
    let all = [memory_and_file::BUGS, redis::BUGS, other_servers::BUGS];
    all.into_iter().flatten()
}

/// Prints the bugs, or puts those with these names back, one by one; all, if there is no name.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), String> {
    if arguments == ["--list"] {
        bugs().for_each(|bug| println!("{:34} {:18} {}", bug.name, bug.suite, bug.breaks));
        return Ok(());
    }
    let chosen = chosen(arguments)?;
    let tree = workspace.target().join("proof").join("tree");
    check_out(workspace, &tree)?;
    println!("name | suite | promise that broke | found after | programs");
    let mut open = Vec::new();
    for bug in chosen {
        match put_back(workspace, &tree, bug) {
            Ok(Some(found)) => println!(
                "{} | {} | {} | {} | {}",
                bug.name, bug.suite, found.promise, found.after, found.programs
            ),
            Ok(None) => {
                println!("{} | {} | none | survives | -", bug.name, bug.suite);
                open.push(format!("{} survives", bug.name));
            }
            Err(error) => {
                println!("{} | {} | - | fails | -", bug.name, bug.suite);
                open.push(format!("{}: {error}", bug.name));
            }
        }
    }
    match open.is_empty() {
        true => Ok(()),
        false => Err(open.join("\n")),
    }
}

fn chosen(names: &[String]) -> Result<Vec<&'static Bug>, String> {
    if names.is_empty() {
        return Ok(bugs().collect());
    }
    let named = |name: &String| {
        let known = bugs().find(|bug| bug.name == name);
        known.ok_or_else(|| format!("unknown bug {name:?}: `cargo xtask proof --list` names all"))
    };
    names.iter().map(named).collect()
}

/// Runs the programs with this bug. Afterwards the file is as it was.
fn put_back(workspace: &Workspace, tree: &Path, bug: &Bug) -> Result<Option<Found>, String> {
    let path = tree.join(bug.file);
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(&path).map_err(failed)?;
    std::fs::write(&path, bug.altered(&text)?).map_err(failed)?;
    let found = search::search(workspace, tree, bug);
    std::fs::write(&path, text).map_err(failed)?;
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_bug_applies_to_the_product() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for bug in bugs() {
            let text = std::fs::read_to_string(root.join(bug.file)).unwrap();
            let altered = bug.altered(&text).unwrap();
            assert_ne!(altered, text, "{}", bug.name);
        }
    }

    #[test]
    fn each_bug_has_a_name_and_a_crate() {
        let names: BTreeSet<&str> = bugs().map(|bug| bug.name).collect();
        assert_eq!(names.len(), bugs().count());
        assert!(bugs().all(|bug| bug.package().is_ok()));
        assert!(chosen(&["no-such-bug".into()]).is_err());
    }

    #[test]
    fn each_store_has_two_bugs() {
        for store in [
            "memory",
            "file",
            "redis",
            "quorum",
            "postgres",
            "etcd",
            "zookeeper",
        ] {
            let is_of_store = |bug: &&Bug| bug.name.starts_with(&format!("{store}-"));
            assert!(bugs().filter(is_of_store).count() >= 2, "{store}");
        }
    }
}
