//! The documents of the packages: the pages for users, an example of the configuration, and the licenses of others.

use std::path::Path;
use std::process::Command;

use super::{Folder, Wheels, licenses, make_anew, read, write};
use crate::lint::{links, walk};
use crate::step::succeed;
use crate::workspace::Workspace;

/// What the packages have at the top, and in the same places as the repository.
const CONTENT: [&str; 4] = ["README.md", "CHANGELOG.md", "SECURITY.md", "docs"];

/// What of it is for developers of Leasehold.
const LEFT_OUT: [&str; 2] = ["docs/development", "docs/adding-a-store.md"];

/// The page whose example of TOML is the example of a configuration file.
const CONFIGURATION: &str = "docs/configuration.md";

/// Writes all documents.
pub(super) fn write_all(
    workspace: &Workspace,
    folder: &Folder,
    wheels: &Wheels,
    targets: &[&str],
) -> Result<(), String> {
    let documents = folder.documents();
    make_anew(&documents)?;
    copy_all(workspace.root(), &CONTENT, &documents)?;
    for path in LEFT_OUT {
        let mut remove = Command::new("rm");
        succeed(remove.arg("-r").arg(documents.join(path)))?;
    }
    copy_all(
        &workspace.root().join("packaging"),
        &["examples"],
        &documents,
    )?;
    let page = read(&documents.join(CONFIGURATION))?;
    let example = example(&page).ok_or_else(|| format!("{CONFIGURATION} has no example"))?;
    write(&documents.join("examples/leasehold.toml"), example)?;
    let program = licenses::Program {
        name: "The program leasehold",
        package: "leasehold-cli",
        manifest: workspace.root().join("Cargo.toml"),
    };
    let licenses = documents.join("licenses");
    licenses::write_all(workspace, &program, Some(wheels), targets, &licenses)?;
    drop_broken_links(&documents)
}

fn copy_all(root: &Path, names: &[&str], to: &Path) -> Result<(), String> {
    let mut copy = Command::new("cp");
    copy.arg("-R")
        .args(names.iter().map(|name| root.join(name)));
    succeed(copy.arg(to))
}

/// Returns the first block of TOML in `page`.
fn example(page: &str) -> Option<&str> {
    let (_, block) = page.split_once("```toml\n")?;
    Some(block.split_once("```")?.0)
}

/// Makes text of the links to what the packages leave out.
fn drop_broken_links(documents: &Path) -> Result<(), String> {
    walk(documents, &[".md"], &mut |path| {
        let page = path.strip_prefix(documents).unwrap_or(path);
        let text = links::without_broken(documents, page, &read(path)?);
        write(path, &text)
    })
}

/// Fails if a link in the documents below `root` leads nowhere, or to a file outside.
pub(super) fn check_links(root: &Path) -> Result<(), String> {
    let mut broken = Vec::new();
    walk(root, &[".md"], &mut |path| {
        let page = path.strip_prefix(root).unwrap_or(path);
        broken.extend(links::check(root, page, &read(path)?));
        Ok(())
    })?;
    match broken.is_empty() {
        true => Ok(()),
        false => Err(broken.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_is_the_first_block_of_toml() {
        let page = "a\n```\nb\n```\n```toml\nc = 1\n```\n```toml\nd = 1\n```\n";
        assert_eq!(example(page), Some("c = 1\n"));
        assert_eq!(example("a"), None);
    }
}
