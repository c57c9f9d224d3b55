use super::Offence;
use super::source::{Source, has_word};

/// Unfinished code, tests that never run, and waits without a condition.
const LEFTOVERS: [(&str, &str); 5] = [
    ("todo!", "finish it"),
    ("unimplemented!", "finish it"),
    (
        "#[ignore",
        "a test that is not run proves nothing: `--skip` leaves one out by name",
    ),
    ("#![ignore", "a test that is not run proves nothing"),
    ("thread::sleep", "wait for a condition, with a bound"),
];

/// A comment on the line, or on the line before, that gives the reason. An exception from clippy's lint
/// with a reason just above does the same.
const EXCUSE: &str = "// tidy: ";

pub(crate) fn check(tree: &[Source]) -> Vec<Offence> {
    let rust = tree.iter().filter(|source| source.is_rust());
    rust.flat_map(leftovers).collect()
}

fn leftovers(source: &Source) -> Vec<Offence> {
    let text: Vec<&str> = source.text.lines().collect();
    let is_excused = |index: usize| {
        let here = text.get(index).is_some_and(|line| line.contains(EXCUSE));
        let above = index.checked_sub(1).and_then(|above| text.get(above));
        let comment = above.is_some_and(|line| line.trim_start().starts_with(EXCUSE));
        here || comment || has_reasoned_lint(&text[..index])
    };
    let mut offences = Vec::new();
    for (index, code) in source.code.lines().enumerate() {
        for (word, remedy) in LEFTOVERS {
            if has_word(code, word) && !is_excused(index) {
                let rule = format!("{word}: {remedy} (or say why: `{EXCUSE}reason`)");
                offences.push(Offence::at(&source.path, index + 1, rule));
            }
        }
    }
    offences
}

/// Whether `lines` end with `#[expect(clippy::disallowed_methods, reason = …)]`.
fn has_reasoned_lint(lines: &[&str]) -> bool {
    if !lines
        .last()
        .is_some_and(|line| line.trim_end().ends_with(")]"))
    {
        return false;
    }
    let start = lines
        .iter()
        .rposition(|line| line.trim_start().starts_with("#["));
    let attribute = start.map(|start| lines[start..].concat());
    attribute.is_some_and(|text| text.contains("disallowed_methods") && text.contains("reason ="))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let found = check(&[Source::new("crates/a/tests/a.rs", text.into())]);
        found.into_iter().map(|offence| offence.line).collect()
    }

    #[test]
    fn each_kind_is_found() {
        assert_eq!(lines("fn f() { todo!() }"), [1]);
        assert_eq!(lines("fn f() { unimplemented!(\"later\") }"), [1]);
        assert_eq!(lines("#[test]\n#[ignore = \"slow\"]\nfn f() {}"), [2]);
        assert_eq!(lines("fn f() {\n    std::thread::sleep(x);\n}"), [2]);
        assert_eq!(lines("use std::thread;\nfn f() { thread::sleep(x); }"), [2]);
    }

    #[test]
    fn a_reason_excuses_its_line_and_the_next_one_only() {
        assert!(lines("thread::sleep(x); // tidy: the server has no event for this").is_empty());
        assert!(lines("// tidy: between two polls\nthread::sleep(x);").is_empty());
        assert_eq!(
            lines("// tidy: between two polls\n\nthread::sleep(x);"),
            [3]
        );
        assert_eq!(lines("f(); // tidy: of f\nthread::sleep(x);"), [2]);
    }

    #[test]
    fn a_lint_lifted_with_a_reason_excuses_the_next_line() {
        let lint = "#[expect(\n    clippy::disallowed_methods,\n    reason = \"a poll\"\n)]\n";
        assert!(lines(&format!("{lint}thread::sleep(x);")).is_empty());
        assert_eq!(lines(&format!("{lint}f();\nthread::sleep(x);")), [6]);
        assert_eq!(
            lines("#[expect(clippy::disallowed_methods)]\nthread::sleep(x);"),
            [2]
        );
    }

    #[test]
    fn words_in_comments_and_strings_do_no_harm() {
        assert!(lines("// todo!()\nfn f() { \"thread::sleep\"; }").is_empty());
    }
}
