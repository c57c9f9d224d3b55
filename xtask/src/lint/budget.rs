//! How many lines of code each crate may have: lines that are neither blank nor a comment.

use std::collections::BTreeMap;

/// For each crate, the most lines of its code, and of its tests and examples. A larger number is a line of the commit that
/// says what it buys.
const BUDGET: [(&str, usize, usize); 17] = [
    ("bench", 4050, 400),
    ("crates/leasehold", 8780, 8711),
    ("crates/leasehold-cli", 15100, 13050),
    ("crates/leasehold-credentials", 850, 500),
    ("crates/leasehold-etcd", 4800, 2580),
    ("crates/leasehold-fakeredis", 2400, 950),
    ("crates/leasehold-file", 3720, 4050),
    ("crates/leasehold-model", 900, 250),
    ("crates/leasehold-postgres", 3550, 2850),
    ("crates/leasehold-quorum", 7630, 7440),
    ("crates/leasehold-redis", 8540, 11550),
    ("crates/leasehold-simulation", 5150, 900),
    ("crates/leasehold-stores", 650, 1200),
    ("crates/leasehold-testkit", 10500, 1900),
    ("crates/leasehold-types", 2350, 600),
    ("crates/leasehold-zookeeper", 4530, 2400),
    // The wheels of Python and the packages of npm, for four platforms.
    ("xtask", 4330, 670),
];

/// A number this far above what is there buys nothing: lower it.
const UNUSED_MAX: usize = 200;

/// Counts the lines of the crates.
#[derive(Debug, Default)]
pub(super) struct Budget {
    used: BTreeMap<String, Lines>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    code: usize,
    tests: usize,
}

impl Budget {
    /// Adds a source file.
    pub(super) fn add(&mut self, path: &str, text: &str) {
        let Some(name) = crate_of(path) else { return };
        let lines = self.used.entry(name.to_owned()).or_default();
        let mut is_test = is_test_file(path);
        let mut text = text.lines().map(str::trim_end).peekable();
        while let Some(line) = text.next() {
            // Tests are the last part of a file.
            is_test |= line == "#[cfg(test)]"
                && text
                    .peek()
                    .is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'));
            let line = line.trim_start();
            let is_comment = ["//", "--"].iter().any(|start| line.starts_with(start));
            match line.is_empty() || is_comment {
                true => {}
                false if is_test => lines.tests += 1,
                false => lines.code += 1,
            }
        }
    }

    /// Returns a violation for each crate with too many lines, and for each number that is too large.
    pub(super) fn violations(&self) -> Vec<String> {
        self.compare(&BUDGET)
    }

    fn compare(&self, budget: &[(&str, usize, usize)]) -> Vec<String> {
        let mut violations = Vec::new();
        for (name, used) in &self.used {
            let allowed = budget.iter().find(|(of, ..)| of == name);
            let (code, tests) = allowed.map_or((0, 0), |(_, code, tests)| (*code, *tests));
            let each = [("code", used.code, code), ("tests", used.tests, tests)];
            for (what, used, allowed) in each {
                let advice = match used > allowed {
                    true => "make it smaller, or raise the number and say what that buys",
                    false if allowed - used > UNUSED_MAX => "lower the number",
                    false => continue,
                };
                violations.push(format!(
                    "{name}: {used} lines of {what}, {allowed} in xtask/src/lint/budget.rs: {advice}"
                ));
            }
        }
        violations
    }
}

/// The folder of the crate that a file belongs to.
fn crate_of(path: &str) -> Option<&str> {
    let ends = [".rs", ".lua", ".sql"];
    let parts = match path.strip_prefix("crates/") {
        Some(_) => 2,
        None => 1,
    };
    let end = path.match_indices('/').nth(parts - 1)?.0;
    ends.iter()
        .any(|it| path.ends_with(it))
        .then_some(&path[..end])
}

fn is_test_file(path: &str) -> bool {
    let folders = ["/tests/", "/examples/"];
    folders.iter().any(|folder| path.contains(folder))
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> Budget {
        let mut budget = Budget::default();
        let file =
            "//! Text.\n\nfn a() {}\n    // why\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        budget.add("crates/a/src/lib.rs", file);
        budget.add("crates/a/src/one.sql", "-- why\nselect 1;\n");
        budget.add("crates/a/src/lib_tests.rs", "fn c() {}\n");
        budget.add("crates/a/Cargo.toml", "[package]\n");
        budget
    }

    #[test]
    fn blank_lines_and_comments_are_free() {
        let lines = Lines { code: 2, tests: 5 };
        assert_eq!(budget().used["crates/a"], lines);
    }

    #[test]
    fn crate_above_its_budget_is_reported() {
        let compare = |code, tests| budget().compare(&[("crates/a", code, tests)]);
        assert!(compare(2, 5).is_empty());
        assert!(compare(1, 5)[0].starts_with("crates/a: 2 lines of code, 1 in "));
        assert!(compare(2, 4)[0].starts_with("crates/a: 5 lines of tests, 4 in "));
        assert!(compare(2, 5 + UNUSED_MAX).is_empty());
        assert!(compare(3 + UNUSED_MAX, 5)[0].ends_with("lower the number"));
        assert_eq!(budget().compare(&[]).len(), 2, "a crate without a number");
    }
}
