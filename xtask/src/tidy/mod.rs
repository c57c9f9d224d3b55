use std::path::Path;

use crate::mutants;
use crate::step::step;
use crate::workspace::Workspace;

mod blank;
mod contract;
mod layers;
mod leftovers;
mod lints;
mod places;
mod pure;
mod scripts;
mod size;
mod source;

use source::Source;

/// What breaks a rule: where, and which.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offence {
    path: String,
    /// Counted from 1; 0 where the file as a whole is meant.
    line: usize,
    rule: String,
}

impl Offence {
    fn at(path: &str, line: usize, rule: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            rule: rule.into(),
        }
    }
}

/// A pure function over the files of the tree.
type Rule = fn(&[Source]) -> Vec<Offence>;

/// Reads the tree and checks every rule.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    step("tidy", || {
        mutants::check(workspace)?;
        let tree = read(workspace.root())?;
        let offences = judge(&tree);
        for Offence { path, line, rule } in &offences {
            println!("{path}:{line}: {rule}");
        }
        match offences.len() {
            0 => Ok(()),
            count => Err(format!("{count} offences against the rules of the tree")),
        }
    })
}

/// All rules, over a whole tree of files.
fn judge(tree: &[Source]) -> Vec<Offence> {
    let rules: [Rule; 8] = [
        size::check,
        layers::check,
        places::check,
        pure::check,
        leftovers::check,
        lints::check,
        scripts::check,
        contract::check,
    ];
    let mut offences: Vec<Offence> = rules.iter().flat_map(|rule| rule(tree)).collect();
    offences.sort();
    offences
}

fn read(root: &Path) -> Result<Vec<Source>, String> {
    let mut tree = Vec::new();
    for folder in ["crates", "xtask", "bench"] {
        let folder = root.join(folder);
        if folder.is_dir() {
            walk(root, &folder, &mut tree)?;
        }
    }
    tree.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(tree)
}

fn walk(root: &Path, folder: &Path, tree: &mut Vec<Source>) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let entry = entry.map_err(|error| failed(folder, error))?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                walk(root, &path, tree)?;
            }
        } else if [".rs", ".lua", "Cargo.toml", "clippy.toml"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
            let relative = path.strip_prefix(root).unwrap_or(&path);
            tree.push(Source::new(&relative.to_string_lossy(), text));
        }
    }
    Ok(())
}
