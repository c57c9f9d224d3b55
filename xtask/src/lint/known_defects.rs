use std::path::Path;

/// Returns the tests that `page` names in its last column, each by the name of its function.
pub(super) fn tests(page: &str) -> impl Iterator<Item = &str> {
    page.lines()
        .filter_map(|line| line.strip_suffix("` |")?.rsplit('`').next())
        .filter_map(|path| path.rsplit("::").next())
}

/// Returns a violation for each test that `page` names and `sources` do not define.
pub(super) fn check(page: &Path, text: &str, sources: &[String]) -> Vec<String> {
    let is_missing = |test: &&str| {
        let definition = format!("fn {test}(");
        !sources.iter().any(|source| source.contains(&definition))
    };
    let missing = tests(text).filter(is_missing);
    missing
        .map(|test| format!("{}: there is no test {test}", page.display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "| defect | test |\n|---|---|\n| A `b` | `module::tests::works` |\n";

    #[test]
    fn tests_are_in_the_last_column() {
        assert_eq!(tests(PAGE).collect::<Vec<_>>(), ["works"]);
    }

    #[test]
    fn missing_test_is_reported() {
        let page = Path::new("page.md");
        assert!(check(page, PAGE, &["fn works() {}".to_owned()]).is_empty());
        let violations = check(page, PAGE, &["fn works_not() {}".to_owned()]);
        assert_eq!(violations, ["page.md: there is no test works"]);
    }
}
