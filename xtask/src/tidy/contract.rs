use std::collections::{BTreeMap, BTreeSet};

use super::Offence;
use super::source::{Source, has_word, words};

/// No store without the contract suite, no obligation without a test, no test without an
/// obligation.
pub(crate) fn check(tree: &[Source]) -> Vec<Offence> {
    let mut offences = stores(tree);
    offences.extend(obligations(tree));
    offences
}

/// Every public type that implements `Store` is named in its crate's `tests/contract.rs`, which runs
/// the suite.
fn stores(tree: &[Source]) -> Vec<Offence> {
    let mut offences = Vec::new();
    for source in tree.iter().filter(|source| source.is_library_code()) {
        let suite = format!("crates/{}/tests/contract.rs", source.crate_name());
        let suite = tree.iter().find(|source| source.path == suite);
        for (line, name) in implementors(&source.shipped_code()) {
            if !is_public(tree, source.crate_name(), &name) {
                continue;
            }
            let problem = match suite {
                None => "has no tests/contract.rs",
                Some(suite) if !suite.code.contains("leasehold_testkit::contract") => {
                    "does not use leasehold_testkit::contract in tests/contract.rs"
                }
                Some(suite) if !has_word(&suite.code, &name) => {
                    "does not name it in tests/contract.rs"
                }
                Some(_) => continue,
            };
            let rule = format!("{name} is a store, and its crate {problem}");
            offences.push(Offence::at(&source.path, line, rule));
        }
    }
    offences
}

/// Returns the types of `impl Store for Type`, with their lines.
fn implementors(code: &str) -> Vec<(usize, String)> {
    words(code, "impl")
        .filter_map(|start| {
            let header = code[start + 4..].split('{').next()?;
            let (of, to) = header.split_once(" for ")?;
            let of = last_segment(of);
            let line = code[..start].matches('\n').count() + 1;
            (of == "Store").then(|| (line, last_segment(to)))
        })
        .collect()
}

/// Returns `Wrapper` of `crate::Wrapper<S> where S: Store`, and `Store` of `<S: Send> crate::Store`.
fn last_segment(path: &str) -> String {
    let mut path = path.split(" where ").next().unwrap_or_default().trim();
    if path.starts_with('<') {
        path = match closing(path) {
            Some(end) => path[end + 1..].trim(),
            None => path,
        };
    }
    let path = path.split('<').next().unwrap_or_default().trim();
    path.rsplit("::")
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn closing(generics: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, byte) in generics.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' => {
                depth -= 1;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

fn is_public(tree: &[Source], crate_name: &str, name: &str) -> bool {
    tree.iter()
        .filter(|source| source.crate_name() == crate_name && source.is_library_code())
        .any(|source| {
            let kinds = ["struct", "enum"];
            kinds
                .iter()
                .any(|kind| has_word(&source.code, &format!("pub {kind} {name}")))
        })
}

const CONTRACTS: [&str; 5] = [
    "crates/leasehold/src/store/mod.rs",
    "crates/leasehold/src/store/inspection.rs",
    "crates/leasehold/src/store/admin.rs",
    "crates/leasehold/src/store/records.rs",
    "crates/leasehold/src/store/health.rs",
];
const SUITE: &str = "crates/leasehold-testkit/src/contract/";

/// Each `**A1**` of the contracts has a test `a1_…` in the suite, and the other way round.
fn obligations(tree: &[Source]) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut told: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    for source in tree
        .iter()
        .filter(|source| CONTRACTS.contains(&source.path.as_str()))
    {
        for (line, id) in numbered(&source.text) {
            if told.insert(id.clone(), (&source.path, line)).is_some() {
                let rule = format!("obligation {id} is numbered twice");
                offences.push(Offence::at(&source.path, line, rule));
            }
        }
    }
    let mut tested = BTreeSet::new();
    for source in tree.iter().filter(|source| source.path.starts_with(SUITE)) {
        for (line, id) in tests_of(&source.code) {
            if !told.contains_key(&id) {
                let rule = format!("a test of {id}, which is no obligation of any trait");
                offences.push(Offence::at(&source.path, line, rule));
            }
            tested.insert(id);
        }
    }
    for (id, (path, line)) in told.iter().filter(|(id, _)| !tested.contains(*id)) {
        let rule = format!(
            "obligation {id} has no test {}_… in {SUITE}",
            id.to_lowercase()
        );
        offences.push(Offence::at(path, *line, rule));
    }
    offences
}

/// The ids of the lines `/// - **A1** …`.
fn numbered(text: &str) -> Vec<(usize, String)> {
    text.lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let doc = line.trim_start().strip_prefix("///")?.trim_start();
            let (id, _) = doc.strip_prefix("- **")?.split_once("**")?;
            is_id(id).then(|| (index + 1, id.to_owned()))
        })
        .collect()
}

/// The ids of functions named like `a1_exclusive_claims_exclude`.
fn tests_of(code: &str) -> Vec<(usize, String)> {
    words(code, "fn")
        .filter_map(|start| {
            let (id, _) = code[start + 2..].trim_start().split_once('_')?;
            let id = id.to_uppercase();
            let line = code[..start].matches('\n').count() + 1;
            is_id(&id).then_some((line, id))
        })
        .collect()
}

/// A capital and a number.
fn is_id(text: &str) -> bool {
    let mut chars = text.chars();
    let letter = chars.next().is_some_and(|c| c.is_ascii_uppercase());
    let number = chars.as_str();
    letter && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(files: &[(&str, &str)]) -> Vec<String> {
        let tree: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::new(path, (*text).into()))
            .collect();
        check(&tree)
            .into_iter()
            .map(|offence| offence.rule)
            .collect()
    }

    const STORE: (&str, &str) = (
        "crates/leasehold-x/src/store.rs",
        "pub struct XStore;\nimpl leasehold::Store for XStore {}\n",
    );

    #[test]
    fn a_store_without_the_suite_is_told() {
        assert_eq!(
            rules(&[STORE]),
            ["XStore is a store, and its crate has no tests/contract.rs"]
        );
        let suite = "crates/leasehold-x/tests/contract.rs";
        let other = (
            suite,
            "use leasehold_testkit::contract;\nrun::<YStore>();\n",
        );
        assert_eq!(
            rules(&[STORE, other]),
            ["XStore is a store, and its crate does not name it in tests/contract.rs"]
        );
        let right = (
            suite,
            "use leasehold_testkit::contract;\nrun::<XStore>();\n",
        );
        assert!(rules(&[STORE, right]).is_empty());
        let comment = (suite, "// leasehold_testkit::contract, XStore\n");
        assert_eq!(rules(&[STORE, comment]).len(), 1);
    }

    #[test]
    fn generics_and_private_helpers_do_not_confuse_it() {
        let code = "impl<T: Into<u8>> crate::Store for Wrapper<T> where T: Store {}\n\
                    impl<S: Store> fmt::Debug for Client<S> {}\nimpl Wrapper<u8> {}\n";
        assert_eq!(implementors(code), [(1, "Wrapper".to_owned())]);
        let private = (
            "crates/leasehold/src/a.rs",
            "struct Spy;\nimpl Store for Spy {}\n",
        );
        assert!(rules(&[private]).is_empty());
    }

    #[test]
    fn obligations_and_tests_are_the_same_set() {
        let contract = "/// - **A1** excludes.\n/// - **A2** shares.\n/// **Not** one.\n";
        let contract = (CONTRACTS[0], contract);
        let path = "crates/leasehold-testkit/src/contract/exclusion.rs";
        let both = (
            path,
            "async fn a1_x() {}\nasync fn a2_y() {}\nfn in_time() {}\n",
        );
        assert!(rules(&[contract, both]).is_empty());
        let other = (path, "async fn a1_x() {}\nfn a3_z() {}\n");
        let found = rules(&[contract, other]);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("a test of A3"), "{found:?}");
        assert!(
            found[1].starts_with("obligation A2 has no test a2_"),
            "{found:?}"
        );
    }

    #[test]
    fn an_id_is_given_once() {
        let twice = (CONTRACTS[1], "/// - **H1** a.\n/// - **H1** b.\n");
        let test = (
            "crates/leasehold-testkit/src/contract/h.rs",
            "fn h1_a() {}\n",
        );
        assert_eq!(rules(&[twice, test]), ["obligation H1 is numbered twice"]);
    }
}
