use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// How the code begins that only tests compile.
const TESTS: [&[&str]; 2] = [
    &["#", "[", "cfg", "(", "test", ")"],
    &["#", "[", "cfg", "(", "all", "(", "test"],
];

/// Returns the words and marks of `code`, without comments, literals, and what only tests compile.
pub(super) fn shipped(code: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    // The build names a file that is no Rust.
    flatten(code.parse().unwrap_or_default(), &mut tokens);
    let (mut found, mut rest) = (Vec::new(), tokens.as_slice());
    while let [first, after @ ..] = rest {
        if TESTS.iter().any(|start| begins(rest, start)) {
            rest = after_item(rest);
        } else {
            found.push(first.clone());
            rest = after;
        }
    }
    found
}

fn begins(tokens: &[String], start: &[&str]) -> bool {
    tokens.len() >= start.len() && tokens.iter().zip(start).all(|(token, word)| token == word)
}

/// Returns what follows the item at the beginning.
fn after_item(tokens: &[String]) -> &[String] {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token.as_str() {
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

fn flatten(stream: TokenStream, found: &mut Vec<String>) {
    let mut is_joint = false;
    for tree in stream {
        let was_joint = std::mem::take(&mut is_joint);
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace | Delimiter::None => ("{", "}"),
                };
                found.push(open.into());
                flatten(group.stream(), found);
                found.push(close.into());
            }
            TokenTree::Punct(mark) => match found.last_mut() {
                Some(last) if was_joint && last == ":" && mark.as_char() == ':' => last.push(':'),
                _ => {
                    is_joint = mark.spacing() == Spacing::Joint;
                    found.push(mark.as_char().into());
                }
            },
            TokenTree::Ident(word) => found.push(word.to_string()),
            TokenTree::Literal(_) => {}
        }
    }
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
