//! The code of docs/adding-a-store.md is that of the example, which the contract suite tests.
//! `SNAPSHOTS=overwrite` renews it.
#![allow(missing_docs, reason = "a test program has no API")]

use std::fs;
use std::path::Path;

/// What comes before each code: `<!-- example_store/store.rs [renew] -->` names a file and a region of it.
const SOURCE: &str = "<!-- ";

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the environment says whether to renew the page"
)]
fn code_of_the_page_is_the_example() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let path = tests.join("../../../docs/adding-a-store.md");
    let page = fs::read_to_string(&path).expect("the page");
    let mut renewed = String::new();
    let mut codes = 0;
    let mut parts = page.split("```rust\n");
    renewed += parts.next().expect("a text");
    for part in parts {
        let (_, text) = part.split_once("```\n").expect("the end of a code");
        let source = renewed.trim_end().lines().last().expect("a line");
        let source = source
            .strip_prefix(SOURCE)
            .and_then(|it| it.strip_suffix(" -->"));
        let (file, region) = source.and_then(|it| it.split_once(' ')).expect("a source");
        let code = fs::read_to_string(tests.join(file)).expect("a file of the example");
        renewed += &format!("```rust\n{}```\n{text}", within(&code, region));
        codes += 1;
    }
    assert!(codes > 5, "{codes} codes");
    if std::env::var_os("SNAPSHOTS").is_some_and(|it| it == "overwrite") {
        fs::write(&path, &renewed).expect("the page");
    } else {
        assert_eq!(page, renewed);
    }
}

/// Returns the lines between the two comments `// REGION`, without their common indentation.
fn within(code: &str, region: &str) -> String {
    let mark = format!("// {region}");
    let lines: Vec<&str> = code.lines().collect();
    let marks: Vec<usize> = (0..lines.len())
        .filter(|line| lines[*line].trim() == mark)
        .collect();
    let [begin, end] = marks[..] else {
        panic!("{region} has {} marks", marks.len())
    };
    let indentation = lines[begin].len() - mark.len();
    let lines = lines[begin + 1..end].iter();
    lines
        .map(|line| format!("{}\n", line.get(indentation..).unwrap_or_default()))
        .collect()
}
