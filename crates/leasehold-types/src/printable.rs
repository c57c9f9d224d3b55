//! Which characters may reach a terminal.

/// Returns whether a terminal shows `c` and keeps its place: not a control character, a line or paragraph
/// separator, or a format character (category Cf of Unicode), such as one that overrides the direction of the
/// text. With the others, a name could look like another one, or like a row of a table.
pub fn is_printable(c: char) -> bool {
    let c_number = u32::from(c);
    !c.is_control()
        && !UNPRINTABLE
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&c_number))
}

/// Returns `text` with U+FFFD in place of each character that is not [printable](is_printable). For text that
/// another user may have written.
pub fn printable(text: &str) -> String {
    text.replace(|c| !is_printable(c), "\u{fffd}")
}

/// Returns the first character of `text` that is not printable, with what it is.
pub(crate) fn unprintable(text: &str) -> Option<String> {
    let found = text.chars().find(|c| !is_printable(*c))?;
    let kind = match found {
        c if c.is_control() => "control",
        '\u{2028}' | '\u{2029}' => "separator",
        _ => "format",
    };
    Some(format!("the {kind} character {found:?}"))
}

/// The format characters (Cf) of Unicode 16, and the line and paragraph separators (Zl and Zp). A later
/// version may have more, but two clients must never disagree about a name for that reason.
const UNPRINTABLE: [(u32, u32); 22] = [
    (0xad, 0xad),
    (0x600, 0x605),
    (0x61c, 0x61c),
    (0x6dd, 0x6dd),
    (0x70f, 0x70f),
    (0x890, 0x891),
    (0x8e2, 0x8e2),
    (0x180e, 0x180e),
    (0x200b, 0x200f),
    (0x2028, 0x2029),
    (0x202a, 0x202e),
    (0x2060, 0x2064),
    (0x2066, 0x206f),
    (0xfeff, 0xfeff),
    (0xfff9, 0xfffb),
    (0x110bd, 0x110bd),
    (0x110cd, 0x110cd),
    (0x13430, 0x1343f),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0xe0001, 0xe0001),
    (0xe0020, 0xe007f),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_characters_are_not_printable() {
        for c in [
            '\0',
            '\n',
            '\u{85}',
            '\u{ad}',
            '\u{200b}',
            '\u{200d}',
            '\u{2028}',
            '\u{202e}',
            '\u{2066}',
            '\u{feff}',
            '\u{e0041}',
        ] {
            assert!(!is_printable(c), "{c:?}");
        }
        for c in ['a', ' ', 'ü', '鍵', '\u{301}', '\u{2065}', '\u{fffd}', '🔒'] {
            assert!(is_printable(c), "{c:?}");
        }
    }

    #[test]
    fn standard_library_escapes_what_is_unprintable() {
        for c in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let is_escaped = c.escape_debug().to_string().starts_with("\\");
            assert!(is_printable(c) || is_escaped, "{c:?}");
        }
    }

    #[test]
    fn unprintable_character_is_named_and_replaced() {
        assert_eq!(printable("a\u{202e}b\n"), "a\u{fffd}b\u{fffd}");
        assert_eq!(unprintable("ab"), None);
        let named = unprintable("a\u{202e}b").unwrap();
        assert_eq!(named, "the format character '\\u{202e}'");
    }
}
