/// How the code begins that only tests compile.
const TESTS: [&[&str]; 2] = [
    &["#", "[", "cfg", "(", "test", ")"],
    &["#", "[", "cfg", "(", "all", "(", "test"],
];

/// Returns the words and marks of `code`, without comments, literals, and what only tests compile.
pub(super) fn shipped(code: &str) -> Vec<&str> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut rest = tokens.as_slice();
    while let [first, after @ ..] = rest {
        if TESTS.iter().any(|start| rest.starts_with(start)) {
            rest = after_item(rest);
        } else {
            found.push(*first);
            rest = after;
        }
    }
    found
}

/// Returns what follows the item at the beginning.
fn after_item<'a, 'b>(tokens: &'a [&'b str]) -> &'a [&'b str] {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => return &tokens[index..],
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                if depth == 0 {
                    return &tokens[index + 1..];
                }
            }
            ";" if depth == 0 => return &tokens[index + 1..],
            _ => {}
        }
    }
    &[]
}

fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let (length, is_code) = match comment_or_literal(rest, first) {
            Some(length) => (length, false),
            None if is_in_word(first) => {
                let end = rest.find(|c| !is_in_word(c));
                (end.unwrap_or(rest.len()), true)
            }
            None if rest.starts_with("::") => (2, true),
            None => (first.len_utf8(), true),
        };
        let (token, after) = rest.split_at(length);
        if is_code {
            found.push(token);
        }
        rest = after.trim_start();
    }
    found
}

pub(super) fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of the comment or the literal at the beginning, if there is one.
fn comment_or_literal(rest: &str, first: char) -> Option<usize> {
    match first {
        '/' if rest.starts_with("//") => Some(rest.find('\n').unwrap_or(rest.len())),
        '/' if rest.starts_with("/*") => Some(rest.find("*/").map_or(rest.len(), |end| end + 2)),
        '\'' => character(rest),
        '"' | 'b' | 'c' | 'r' => text(rest),
        _ => None,
    }
}

/// Returns the length of a character. `None` for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        // The next one may be a quotation mark that ends nothing.
        chars.next()?;
        return chars.find(|(_, c)| *c == '\'').map(|(end, _)| end + 1);
    }
    let (end, last) = chars.next()?;
    (last == '\'').then_some(end + 1)
}

/// Returns the length of a string of any kind.
fn text(rest: &str) -> Option<usize> {
    let prefix = rest.find(|c| !matches!(c, 'b' | 'c' | 'r'))?;
    if rest[..prefix].ends_with('r') {
        let marks = rest[prefix..].find(|c| c != '#')?;
        let start = prefix + marks;
        let body = rest[start..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(marks));
        let end = body
            .find(&close)
            .map_or(body.len(), |end| end + close.len());
        return Some(start + 1 + end);
    }
    let body = rest[prefix..].strip_prefix('"')?;
    let mut is_escaped = false;
    let end = body.find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    Some(prefix + 1 + end.map_or(body.len(), |end| end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_left_out() {
        let code = r###"
            // crate::a
            /* crate::b */ let x: &'static str = "crate::\"c"; let y = r#"crate::"d"#;
            let z = ['\'', '"', '\u{1F}', 'e']; call(b"f", x);
        "###;
        let shipped = shipped(code).join(" ");
        assert_eq!(
            shipped,
            "let x : & ' static str = ; let y = ; let z = [ , , , ] ; call ( , x ) ;"
        );
    }

    #[test]
    fn code_of_tests_is_left_out() {
        let code = "
            #[cfg(test)] use a::{b, c};
            #[cfg(test)] mod tests;
            kept();
            #[cfg(all(test, unix))] #[allow(x)] mod more { fn f() -> [u8; 3] { g(); } }
            #[cfg(any(test, unix))] fn h() {}
            struct S { a: u8, #[cfg(test)] b: u8 }
        ";
        let shipped = shipped(code).join("");
        assert_eq!(
            shipped,
            ";kept();#[cfg(any(test,unix))]fnh(){}structS{a:u8,}"
        );
    }
}
