//! Each numbered obligation in the documentation of the store traits has a test in the contract suite, and each
//! numbered test an obligation.
#![allow(missing_docs, reason = "a test program has no API")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns what `find` finds in the lines of all Rust files below `folder`, a path in `crates`.
fn collect(folder: &str, find: fn(&str) -> Option<String>) -> Vec<String> {
    let mut folders = vec![
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(folder),
    ];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a text file");
                found.extend(text.lines().filter_map(find));
            }
        }
    }
    found.sort();
    found
}

/// Reads a line like `/// - **A1** …`.
fn obligation(line: &str) -> Option<String> {
    let (id, _) = line
        .trim_start()
        .strip_prefix("/// - **")?
        .split_once("**")?;
    is_id(id).then(|| id.to_owned())
}

/// Reads a line like `pub async fn a1_exclusive_claims_exclude(…`.
fn test(line: &str) -> Option<String> {
    let (_, name) = line.split_once("fn ")?;
    let id = name.split_once('_')?.0.to_uppercase();
    is_id(&id).then_some(id)
}

fn is_id(text: &str) -> bool {
    let mut chars = text.chars();
    let has_letter = chars
        .next()
        .is_some_and(|letter| letter.is_ascii_uppercase());
    let number = chars.as_str();
    has_letter && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn each_obligation_has_a_test() {
    let obligations = collect("leasehold/src", obligation);
    let tests: BTreeSet<String> = collect("leasehold-testkit/src/contract", test)
        .into_iter()
        .collect();
    assert!(obligations.len() > 30, "{obligations:?}");
    let unique: BTreeSet<String> = obligations.iter().cloned().collect();
    assert_eq!(
        unique.len(),
        obligations.len(),
        "a number is used twice: {obligations:?}"
    );
    assert_eq!(unique, tests);
}
