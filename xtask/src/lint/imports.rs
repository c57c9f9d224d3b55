use std::collections::{BTreeMap, BTreeSet};

/// The `use crate::…` of the modules at the root of the core. Tests may import anything.
#[derive(Debug, Default)]
pub(super) struct Imports(BTreeMap<String, BTreeSet<String>>);

impl Imports {
    /// Adds a file, by its path below `src`.
    pub(super) fn add(&mut self, path: &str, text: &str) {
        let module = path.split(['/', '.']).next().unwrap_or_default();
        if path.contains("tests") || matches!(module, "lib" | "fuzzing") {
            return;
        }
        let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
        let names = shipped.lines().filter_map(|line| {
            let (_, path) = line.split_once("use crate::")?;
            path.split(|c: char| !c.is_ascii_lowercase() && c != '_')
                .next()
        });
        let imports = self.0.entry(module.to_owned()).or_default();
        imports.extend(names.filter(|name| *name != module).map(str::to_owned));
    }

    /// Returns the modules that import each other in a cycle, and those that import them all.
    pub(super) fn cycle(mut self) -> Vec<String> {
        loop {
            let modules: BTreeSet<String> = self.0.keys().cloned().collect();
            // What imports nothing that is left is in no cycle.
            self.0.retain(|_, imports| !imports.is_disjoint(&modules));
            if self.0.len() == modules.len() {
                return modules.into_iter().collect();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(files: &[(&str, &str)]) -> Vec<String> {
        let mut imports = Imports::default();
        for (path, text) in files {
            imports.add(path, text);
        }
        imports.cycle()
    }

    #[test]
    fn cycles_are_reported() {
        let types = ("types/mod.rs", "use crate::BoxFuture;\n");
        let client = (
            "client.rs",
            "use crate::types::Key;\nuse crate::client::Inner;\n",
        );
        assert!(cycle(&[types, client]).is_empty());
        let back = ("types/key.rs", "pub(crate) use crate::client;\n");
        assert_eq!(cycle(&[types, client, back]), ["client", "types"]);
        let test = ("types/key.rs", "#[cfg(test)]\nuse crate::client;\n");
        assert!(cycle(&[types, client, test]).is_empty());
    }
}
