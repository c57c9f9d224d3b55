//! Among the modules of one folder, imports point one way. A folder's `mod.rs` and the files of that folder may import
//! each other.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// The modules of all crates, by the words of their paths. The first word is the folder of the crate's sources.
#[derive(Debug, Default)]
pub(super) struct Imports(BTreeMap<Vec<String>, Module>);

#[derive(Debug, Default)]
struct Module {
    /// Its file, below the folder of the crate's sources.
    file: String,
    paths: Vec<NamedPath>,
}

/// A path that a file names, such as `crate::lease::Renewer`.
#[derive(Debug, PartialEq, Eq)]
struct NamedPath {
    words: Vec<String>,
    /// The name that `use` gives it. `None` without `use`, and for all names of a module.
    name: Option<String>,
}

/// For each module of a folder, what it imports of the others, with a sentence about one such import.
type Folder<'a> = BTreeMap<&'a str, BTreeMap<&'a str, String>>;

/// How many times a name is exported again at most. A name that a file has twice may lead to itself.
const EXPORTS_MAX: usize = 8;

impl Imports {
    /// Adds a file, if it is a source of a crate. Tests may import anything.
    pub(super) fn add(&mut self, path: &str, text: &str) {
        let source = path
            .split_once("/src/")
            .filter(|(_, file)| !file.contains("tests"));
        let Some((package, file)) = source else {
            return;
        };
        let Some(name) = file.strip_suffix(".rs") else {
            return;
        };
        let name = name.strip_suffix("/mod").unwrap_or(name);
        let root = format!("{package}/src");
        let below = name
            .split('/')
            .filter(|word| !["lib", "main"].contains(word));
        let words = std::iter::once(root.as_str()).chain(below);
        let module = self.0.entry(words.map(Into::into).collect()).or_default();
        file.clone_into(&mut module.file);
        // The build names a file that is no Rust.
        collect(text.parse().unwrap_or_default(), &[], &mut module.paths);
    }

    /// Returns a violation for each folder whose modules import each other in a cycle.
    pub(super) fn violations(&self) -> Vec<String> {
        let mut folders: BTreeMap<&[String], Folder<'_>> = BTreeMap::new();
        for (from, module) in &self.0 {
            let paths = module.paths.iter();
            for to in paths.filter_map(|path| self.find(from, &path.words, EXPORTS_MAX)) {
                let Some((to, imported)) = self.0.get_key_value(&to) else {
                    continue;
                };
                let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
                if let (Some(importer), Some(name)) = (from.get(common), to.get(common)) {
                    let folder = folders.entry(&from[..common]).or_default();
                    let sentence = format!("{} imports {}", module.file, imported.file);
                    let imports = folder.entry(importer).or_default();
                    imports.entry(name).or_insert(sentence);
                }
            }
        }
        let cycles = folders
            .into_iter()
            .filter_map(|(path, folder)| Some((path.join("/"), cycle(folder)?)));
        let violation = |(path, cycle): (String, String)| {
            format!("{path}: a cycle: {cycle}; move what they share to a file that imports neither")
        };
        cycles.map(violation).collect()
    }

    /// Returns the module that defines what `path` means in the module `from`; `None` if that is in another crate.
    fn find(&self, from: &[String], path: &[String], exports: usize) -> Option<Vec<String>> {
        let mut found = from.to_vec();
        let mut rest = path;
        while let [word, after @ ..] = rest {
            match word.as_str() {
                "crate" => found.truncate(1),
                "self" => {}
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
        if rest.len() == path.len() {
            return None;
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
fn cycle(mut folder: Folder<'_>) -> Option<String> {
    loop {
        let modules: Vec<&str> = folder.keys().copied().collect();
        // What imports nothing that is left is in no cycle.
        folder.retain(|_, imports| imports.keys().any(|it| modules.contains(it)));
        if folder.len() == modules.len() {
            break;
        }
    }
    // Each module that is left imports another one that is left, so this comes to one that it has passed.
    let (mut passed, mut sentences) = (Vec::new(), Vec::new());
    let mut module = *folder.keys().next()?;
    loop {
        if let Some(start) = passed.iter().position(|it| *it == module) {
            return Some(sentences[start..].join(", "));
        }
        passed.push(module);
        let mut imports = folder[module].iter();
        let (imported, sentence) = imports.find(|(it, _)| folder.contains_key(*it))?;
        sentences.push(sentence.clone());
        module = imported;
    }
}

/// Collects the paths that `stream` names, except for those that only tests name. `outer` is the path before the braces of
/// a `use`, and empty elsewhere.
fn collect(stream: TokenStream, outer: &[String], found: &mut Vec<NamedPath>) {
    let mut is_use = !outer.is_empty();
    let mut tokens = stream.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => collect(group.stream(), &[], found),
            TokenTree::Punct(mark) if mark.as_char() == ';' => is_use = false,
            TokenTree::Punct(mark) if mark.as_char() == '#' && is_for_tests(tokens.peek()) => {
                let _item = tokens.find(ends_item);
            }
            TokenTree::Ident(word) if word == "use" => is_use = true,
            TokenTree::Ident(word) => {
                let mut words = [outer, &[word.to_string()]].concat();
                let mut name = words.iter().rfind(|word| *word != "self").cloned();
                while tokens.next_if(is_colon_before_another).is_some() {
                    tokens.next();
                    name = match tokens.next() {
                        Some(TokenTree::Ident(word)) => {
                            words.push(word.to_string());
                            Some(word.to_string())
                        }
                        Some(TokenTree::Group(group)) => {
                            collect(group.stream(), &words, found);
                            None
                        }
                        _ => None,
                    };
                }
                if is_use && tokens.next_if(|it| it.to_string() == "as").is_some() {
                    name = tokens.next().map(|name| name.to_string());
                }
                let name = name.filter(|_| is_use);
                found.push(NamedPath { words, name });
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn is_colon_before_another(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':' && mark.spacing() == Spacing::Joint)
}

/// Returns whether the words after a `#` say that only tests compile what follows.
fn is_for_tests(attribute: Option<&TokenTree>) -> bool {
    let text = attribute.map(|it| it.to_string().replace(' ', ""));
    text.is_some_and(|text| text.starts_with("[cfg(test)") || text.starts_with("[cfg(all(test"))
}

fn ends_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        other => other.to_string() == ";",
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
        let expected = "crates/a/src/lease: a cycle: lease/call.rs imports lease/shared.rs, lease/shared.rs imports \
                        lease/call.rs; move what they share to a file that imports neither";
        for back in [
            "fn f() -> super::call::Call {}",
            "pub(crate) use crate::lease::{self as above, call::*};",
            "fn f() { vec![g::<crate::lease::call::A>()] }",
        ] {
            let back = ("lease/shared.rs", back);
            assert_eq!(violations(&[parent, call, back]), [expected], "{back:?}");
        }
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
        let expected =
            "config/mod.rs imports store/list.rs, store/quorum.rs imports config/text.rs";
        assert!(reported[0].contains(expected), "{reported:?}");
    }

    #[test]
    fn exported_name_leads_to_its_file() {
        let root = ("lib.rs", "pub use a::A; pub use b::{D as B, self};");
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
    fn comments_literals_and_tests_may_name_anything() {
        let a = ("a.rs", "use crate::b::B;");
        for text in [
            "#[cfg(test)] mod tests { use crate::a::A; }",
            "#[cfg(all(test, unix))] #[allow(x)] fn f() -> [crate::a::A; 3] { g(); }",
            "struct S { c: u8, #[cfg(test)] d: crate::a::A }",
            "/* crate::a */ const C: &str = r#\"crate::a::\"A\"#; // crate::a::A",
        ] {
            assert!(violations(&[a, ("b.rs", text)]).is_empty(), "{text}");
        }
        let tests = ("b/tests.rs", "use crate::a::A;");
        assert!(violations(&[a, ("b.rs", ""), tests]).is_empty());
        let after = "#[cfg(test)] use a::{b, c}; use crate::a::A;";
        assert_eq!(violations(&[a, ("b.rs", after)]).len(), 1);
    }
}
