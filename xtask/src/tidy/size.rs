use super::Offence;
use super::source::{Source, item_end, words};

/// Lines of a file, its unit tests included.
const FILE_MAX: usize = 350;
/// Lines of a file under `tests/`, where one file is one subject seen from outside.
const TEST_FILE_MAX: usize = 500;
/// Lines of a function, from its name to its closing brace: what fits on a screen.
const FUNCTION_MAX: usize = 70;

pub(crate) fn check(tree: &[Source]) -> Vec<Offence> {
    tree.iter()
        .filter(|source| source.is_rust())
        .flat_map(|source| file(source).into_iter().chain(functions(source)))
        .collect()
}

fn file(source: &Source) -> Option<Offence> {
    let limit = if source.path.contains("/tests/") {
        TEST_FILE_MAX
    } else {
        FILE_MAX
    };
    let lines = source.text.lines().count();
    (lines > limit).then(|| {
        let rule = format!("the file has {lines} lines, more than {limit}: split it by subject");
        Offence::at(&source.path, 0, rule)
    })
}

fn functions(source: &Source) -> Vec<Offence> {
    let code = &source.code;
    let mut offences = Vec::new();
    for start in words(code, "fn") {
        let name = code[start + 2..].trim_start();
        // `fn(u8) -> u8` is a type.
        if name.starts_with('(') {
            continue;
        }
        let end = item_end(&code[start..]).map_or(code.len(), |end| start + end);
        let lines = code[start..end].matches('\n').count() + 1;
        if lines > FUNCTION_MAX {
            let name: String = name
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            let line = code[..start].matches('\n').count() + 1;
            let rule = format!("fn {name} has {lines} lines, more than {FUNCTION_MAX}");
            offences.push(Offence::at(&source.path, line, rule));
        }
    }
    offences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offences(path: &str, text: String) -> Vec<Offence> {
        check(&[Source::new(path, text)])
    }

    #[test]
    fn a_file_of_351_lines_is_too_long_and_one_of_350_is_not() {
        assert!(offences("crates/a/src/lib.rs", "\n".repeat(350)).is_empty());
        assert_eq!(offences("crates/a/src/lib.rs", "\n".repeat(351)).len(), 1);
        assert!(offences("crates/a/tests/all.rs", "\n".repeat(500)).is_empty());
        assert_eq!(offences("crates/a/tests/all.rs", "\n".repeat(501)).len(), 1);
    }

    #[test]
    fn a_function_of_71_lines_is_too_long_and_one_of_70_is_not() {
        let function = |lines: usize| format!("\nfn long<'a>() {{{}}}\n", "\n".repeat(lines - 1));
        assert!(offences("a.rs", function(70)).is_empty());
        let found = offences("a.rs", function(71));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert!(found[0].rule.contains("fn long has 71 lines"));
    }

    #[test]
    fn a_brace_in_a_string_ends_no_function_and_a_declaration_has_no_body() {
        let text = format!(
            "trait T {{ fn a(&self, x: [u8; 3]); }}\n{}fn b() {{ \"}}\"; }}\n",
            "\n".repeat(80)
        );
        assert!(offences("a.rs", text).is_empty());
    }
}
