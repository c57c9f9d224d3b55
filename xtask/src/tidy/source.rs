use super::blank::blank;

/// A file of the tree, with what the rules need to know about it.
#[derive(Debug)]
pub(crate) struct Source {
    /// From the root of the tree, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text of a Rust file without comments and literals; empty for other files.
    pub(crate) code: String,
    /// The lines (counted from 0) of modules and items under `#[cfg(test)]`.
    test_lines: Vec<bool>,
}

impl Source {
    pub(crate) fn new(path: &str, text: String) -> Self {
        let code = if path.ends_with(".rs") {
            blank(&text)
        } else {
            String::new()
        };
        Self {
            path: path.replace('\\', "/"),
            test_lines: test_lines(&code),
            text,
            code,
        }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The name of the crate's folder: `leasehold-file` for `crates/leasehold-file/src/lib.rs`.
    pub(crate) fn crate_name(&self) -> &str {
        let inner = self.path.strip_prefix("crates/").unwrap_or(&self.path);
        inner.split('/').next().unwrap_or_default()
    }

    /// The path below the crate's `src`, if it lies there.
    pub(crate) fn below_src(&self) -> Option<&str> {
        let (_, below) = self.path.split_once("/src/")?;
        Some(below)
    }

    /// Whether it belongs to a library that users link: the core or a store.
    pub(crate) fn is_library_code(&self) -> bool {
        let own = [
            "leasehold-cli",
            "leasehold-model",
            "leasehold-simulation",
            "leasehold-testkit",
        ];
        self.is_rust()
            && self.path.starts_with("crates/leasehold")
            && !own.contains(&self.crate_name())
            && self.below_src().is_some()
    }

    /// The lines of code that are no tests, counted from 1.
    pub(crate) fn shipped(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.lines().enumerate();
        lines
            .filter(|(index, _)| !self.test_lines.get(*index).is_some_and(|test| *test))
            .map(|(index, line)| (index + 1, line))
    }

    /// The code that is no test, with blank lines in the place of tests.
    pub(crate) fn shipped_code(&self) -> String {
        let mut code = String::new();
        for (index, line) in self.code.lines().enumerate() {
            if !self.test_lines[index] {
                code += line;
            }
            code.push('\n');
        }
        code
    }
}

fn test_lines(code: &str) -> Vec<bool> {
    let mut lines = vec![false; code.lines().count()];
    for (start, _) in code.match_indices("#[cfg(test)]") {
        let end = item_end(&code[start..]).map_or(code.len(), |end| start + end);
        let first = code[..start].matches('\n').count();
        let last = code[..end].matches('\n').count();
        for line in lines.iter_mut().take(last + 1).skip(first) {
            *line = true;
        }
    }
    lines
}

/// Returns the end of the first item of `code`: its closing brace, or a semicolon before any brace.
pub(crate) fn item_end(code: &str) -> Option<usize> {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (index, byte) in code.bytes().enumerate() {
        match byte {
            b'{' => braces += 1,
            b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return Some(index);
                }
            }
            b'[' | b'(' => brackets += 1,
            b']' | b')' => brackets = brackets.saturating_sub(1),
            b';' if braces == 0 && brackets == 0 => return Some(index),
            _ => {}
        }
    }
    None
}

/// Returns the positions of `word` in `code` as a whole word. An end of `word` that is not a letter needs
/// no boundary, so `now(` and `#[ignore` work too.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).filter_map(move |(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        let open = word.starts_with(is_letter) && before.is_some_and(is_letter);
        let more = word.ends_with(is_letter) && after.is_some_and(is_letter);
        (!open && !more).then_some(at)
    })
}

/// Whether `code` contains `word` as a whole word.
pub(crate) fn has_word(code: &str, word: &str) -> bool {
    words(code, word).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_cfg_test_is_not_shipped() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let source = Source::new("crates/leasehold/src/a.rs", text.into());
        let lines: Vec<usize> = source.shipped().map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 6]);
        let single = Source::new("x.rs", "#[cfg(test)]\nuse a::b;\nfn c() {}\n".into());
        assert_eq!(
            single.shipped().map(|(line, _)| line).collect::<Vec<_>>(),
            [3]
        );
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("use tokio::time;", "tokio"));
        assert!(!has_word("tokio_util", "tokio"));
        assert!(has_word("clock.now()", "now("));
        assert!(!has_word("known()", "now("));
    }

    #[test]
    fn libraries_are_the_core_and_the_stores() {
        let is_library = |path: &str| Source::new(path, String::new()).is_library_code();
        assert!(is_library("crates/leasehold/src/types/key.rs"));
        assert!(is_library("crates/leasehold-redis/src/wire/acquire.rs"));
        assert!(!is_library("crates/leasehold-redis/tests/contract.rs"));
        assert!(!is_library("crates/leasehold-cli/src/main.rs"));
        assert!(!is_library("crates/leasehold-testkit/src/lib.rs"));
        assert!(!is_library("xtask/src/main.rs"));
    }
}
