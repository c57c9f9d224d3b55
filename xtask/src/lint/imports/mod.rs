//! Among the modules of one folder, imports point one way. A folder's `mod.rs` and the files of that folder may import
//! each other.

mod paths;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};

use paths::{NamedPath, paths};

/// The imports of all crates, by the folders of their sources.
#[derive(Debug, Default)]
pub(super) struct Imports(BTreeMap<String, Modules>);

/// The modules of one crate, by the words of their paths.
#[derive(Debug, Default)]
struct Modules(BTreeMap<Vec<String>, Module>);

#[derive(Debug)]
struct Module {
    /// Its file, below the folder of the crate's sources.
    file: String,
    paths: Vec<NamedPath>,
}

/// The imports between the modules of one folder, by the importing and the imported module.
type Folder = BTreeMap<String, BTreeMap<String, Import>>;

/// One file that imports another.
#[derive(Clone, Debug)]
struct Import {
    from: String,
    to: String,
}

/// How many times a name is exported again at most. A name that a file has twice may lead to itself.
const EXPORTS_MAX: usize = 8;

impl Imports {
    /// Adds a file, if it is a source of a crate. Tests may import anything.
    pub(super) fn add(&mut self, path: &str, text: &str) {
        let Some((package, file)) = path.split_once("/src/") else {
            return;
        };
        let Some(module) = file.strip_suffix(".rs") else {
            return;
        };
        if file.contains("tests") {
            return;
        }
        let module = module.strip_suffix("/mod").unwrap_or(module);
        let words = match module {
            "lib" | "main" => Vec::new(),
            module => module.split('/').map(str::to_owned).collect(),
        };
        let modules = self.0.entry(format!("{package}/src")).or_default();
        let module = modules.0.entry(words).or_insert_with(|| Module {
            file: file.to_owned(),
            paths: Vec::new(),
        });
        module.paths.extend(paths(text));
    }

    /// Returns a violation for each folder whose modules import each other in a cycle.
    pub(super) fn violations(&self) -> Vec<String> {
        let mut violations = Vec::new();
        for (sources, modules) in &self.0 {
            for (words, folder) in modules.folders() {
                let Some(cycle) = cycle(folder) else {
                    continue;
                };
                let path = format!("{sources}/{}", words.join("/"));
                let path = path.trim_end_matches('/');
                let imports = cycle.iter();
                let imports = imports.map(|it| format!("{} imports {}", it.from, it.to));
                let imports = imports.collect::<Vec<_>>().join(", ");
                violations.push(format!(
                    "{path}: a cycle: {imports}; move what they share to a file that imports neither"
                ));
            }
        }
        violations
    }
}

impl Modules {
    /// Returns the imports between the modules of each folder.
    fn folders(&self) -> BTreeMap<Vec<String>, Folder> {
        let mut folders: BTreeMap<Vec<String>, Folder> = BTreeMap::new();
        for (from, module) in &self.0 {
            let targets = module.paths.iter();
            let targets = targets.filter_map(|path| self.find(from, &path.words, EXPORTS_MAX));
            for to in targets {
                let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if let (Some(importer), Some(imported)) = (from.get(common), to.get(common)) {
                    let folder = folders.entry(from[..common].to_vec()).or_default();
                    let imports = folder.entry(importer.clone()).or_default();
                    imports.entry(imported.clone()).or_insert_with(|| Import {
                        from: module.file.clone(),
                        to: self.0[&to].file.clone(),
                    });
                }
            }
        }
        folders
    }

    /// Returns the module that defines what `path` means in the module `from`; `None` if that is in another crate.
    fn find(&self, from: &[String], path: &[String], exports: usize) -> Option<Vec<String>> {
        let mut found = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => from.to_vec(),
            child => {
                let child = [from, &[child.to_owned()]].concat();
                self.0.contains_key(&child).then(|| from.to_vec())?
            }
        };
        let mut rest = path;
        while let [word, after @ ..] = rest {
            match word.as_str() {
                "crate" | "self" => {}
                "super" => drop(found.pop()?),
                word => {
                    found.push(word.to_owned());
                    if !self.0.contains_key(&found) {
                        found.pop();
                        break;
                    }
                }
            }
            rest = after;
        }
        let exported = rest.first().filter(|_| exports > 0).and_then(|name| {
            let mut paths = self.0.get(&found)?.paths.iter();
            let path = paths.find(|path| path.name.as_ref() == Some(name))?;
            self.find(&found, &path.words, exports - 1)
        });
        exported.or_else(|| self.0.contains_key(&found).then_some(found))
    }
}

/// Returns the imports of a cycle, if there is one.
fn cycle(mut folder: Folder) -> Option<Vec<Import>> {
    loop {
        let modules: BTreeSet<String> = folder.keys().cloned().collect();
        // What imports nothing that is left is in no cycle.
        folder.retain(|_, imports| imports.keys().any(|it| modules.contains(it)));
        if folder.len() == modules.len() {
            break;
        }
    }
    // Each module that is left imports another one that is left, so this comes to one that it has passed.
    let (mut passed, mut imports) = (Vec::new(), Vec::new());
    let mut module = folder.keys().next()?;
    loop {
        if let Some(start) = passed.iter().position(|it| *it == module) {
            return Some(imports.split_off(start));
        }
        passed.push(module);
        let (imported, import) = folder[module]
            .iter()
            .find(|(it, _)| folder.contains_key(*it))?;
        imports.push(import.clone());
        module = imported;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(files: &[(&str, &str)]) -> Vec<String> {
        let mut imports = Imports::default();
        for (file, text) in files {
            imports.add(&format!("crates/a/src/{file}"), text);
        }
        imports.violations()
    }

    #[test]
    fn cycle_of_files_is_reported_with_their_names() {
        let parent = ("lease/mod.rs", "mod call; mod shared;");
        let call = ("lease/call.rs", "use super::shared::Shared;");
        let shared = ("lease/shared.rs", "use super::state;");
        assert!(violations(&[parent, call, shared]).is_empty());
        let back = ("lease/shared.rs", "fn f() -> super::call::Call {}");
        let reported = violations(&[parent, call, back]);
        let expected = "crates/a/src/lease: a cycle: lease/call.rs imports lease/shared.rs, lease/shared.rs imports \
                        lease/call.rs; move what they share to a file that imports neither";
        assert_eq!(reported, [expected]);
    }

    #[test]
    fn cycle_of_folders_is_reported() {
        let files = [
            ("config/mod.rs", "use crate::store::list::split;"),
            ("config/text.rs", ""),
            ("store/mod.rs", ""),
            ("store/list.rs", ""),
            ("store/quorum.rs", "use crate::config::text::short;"),
        ];
        let reported = violations(&files);
        assert_eq!(reported.len(), 1, "{reported:?}");
        for import in [
            "config/mod.rs imports store/list.rs",
            "store/quorum.rs imports config/text.rs",
        ] {
            assert!(reported[0].contains(import), "{reported:?}");
        }
    }

    #[test]
    fn exported_name_leads_to_its_file() {
        let root = ("lib.rs", "pub use a::A; pub use b::B;");
        let a = ("a.rs", "use crate::B;");
        let b = ("b.rs", "use crate::A;");
        assert_eq!(violations(&[root, a, b]).len(), 1);
        // A name that leads to itself is no endless search.
        let inner = ("a.rs", "mod inner { use super::A; } use super::A;");
        assert!(violations(&[root, inner, b]).is_empty());
    }

    #[test]
    fn folder_and_its_files_may_import_each_other() {
        let parent = ("store/mod.rs", "use open::open; pub struct Store;");
        let child = ("store/open.rs", "use super::Store;");
        assert!(violations(&[parent, child]).is_empty());
    }

    #[test]
    fn tests_may_import_anything() {
        let a = ("a.rs", "use crate::b::B;");
        let b = ("b.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }");
        let tests = ("b/tests.rs", "use crate::a::A;");
        assert!(violations(&[a, b, tests]).is_empty());
    }
}
