//! Patterns of keys, as in `SCAN MATCH` and `CONFIG GET`.

/// Whether `text` matches `pattern`: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a literal character.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|skipped| matches(rest, &text[skipped..])),
        ([], _) | (_, []) => false,
        ([b'?', pattern @ ..], [_, text @ ..]) => matches(pattern, text),
        ([b'[', pattern @ ..], [byte, text @ ..]) => {
            let (is_in_class, rest) = class(pattern, *byte);
            is_in_class && matches(rest, text)
        }
        ([b'\\', literal, pattern @ ..], [byte, text @ ..]) => {
            literal == byte && matches(pattern, text)
        }
        ([literal, pattern @ ..], [byte, text @ ..]) => literal == byte && matches(pattern, text),
    }
}

/// Whether the class that begins after `[` contains `byte`. Also returns what follows the class.
fn class(pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    let (is_negated, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut is_found = false;
    loop {
        match rest {
            [] => break,
            [b']', after @ ..] => {
                rest = after;
                break;
            }
            [b'\\', literal, after @ ..] => {
                is_found |= *literal == byte;
                rest = after;
            }
            [first, b'-', last, after @ ..] => {
                is_found |= (*first.min(last)..=*first.max(last)).contains(&byte);
                rest = after;
            }
            [literal, after @ ..] => {
                is_found |= *literal == byte;
                rest = after;
            }
        }
    }
    (is_found != is_negated, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("*append*", "no-appendfsync-on-rewrite", true),
            ("a", "A", false),
        ] {
            let found = matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, expected, "{pattern} {text}");
        }
    }
}
