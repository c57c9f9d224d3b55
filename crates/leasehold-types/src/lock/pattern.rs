use std::fmt;

use crate::printable::unprintable;
use crate::{Error, ErrorKind, Key};

/// Selects locks by name: `*` matches any text, including none and slashes, and `?` matches one
/// character. All other characters match themselves.
///
/// # Examples
///
/// ```
/// use leasehold::look::Pattern;
///
/// let invoices = Pattern::new("invoices/*")?;
/// assert!(invoices.matches("invoices/2026-11") && !invoices.matches("nightly"));
/// assert!(Pattern::all().matches("nightly"));
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Validates `text` and returns it as a pattern.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if no name can match: the text is empty, has more than [`Key::MAX_BYTES`] bytes,
    /// or contains a character that no name has.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let refuse = |rule: String| Err(Error::new(ErrorKind::InvalidInput, rule));
        if text.is_empty() {
            return refuse("the pattern is empty; `*` matches all names".into());
        }
        if text.len() > Key::MAX_BYTES {
            return refuse(format!(
                "the pattern has {} bytes; the maximum is {}, as for a name",
                text.len(),
                Key::MAX_BYTES
            ));
        }
        match unprintable(&text) {
            Some(character) => refuse(format!(
                "the pattern {text:?} contains {character}, which no name has"
            )),
            None => Ok(Self(text)),
        }
    }

    /// Returns the pattern that matches all names.
    pub fn all() -> Self {
        Self("*".into())
    }

    /// Returns the common beginning of all matching names; a store need not look at others.
    pub fn prefix(&self) -> &str {
        let end = self.0.find(['*', '?']);
        &self.0[..end.unwrap_or(self.0.len())]
    }

    /// Returns whether the whole of `name` matches. Takes at most as many steps as the product of both
    /// lengths.
    pub fn matches(&self, name: &str) -> bool {
        let (mut pattern, mut rest) = (self.0.as_str(), name);
        // The pattern after the last star, and the text from which that star must match more.
        let mut retry: Option<(&str, &str)> = None;
        loop {
            let wanted = pattern.chars().next();
            if wanted == Some('*') {
                pattern = &pattern[1..];
                retry = Some((pattern, rest));
                continue;
            }
            let next = rest.chars().next();
            match (wanted, next) {
                (None, None) => return true,
                (Some(wanted), Some(found)) if wanted == '?' || wanted == found => {
                    pattern = &pattern[wanted.len_utf8()..];
                    rest = &rest[found.len_utf8()..];
                }
                _ => {
                    let Some((behind, from)) = retry else {
                        return false;
                    };
                    let Some(taken) = from.chars().next() else {
                        return false;
                    };
                    (pattern, rest) = (behind, &from[taken.len_utf8()..]);
                    retry = Some((pattern, rest));
                }
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_text() {
        let cases = [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "a", true),
            ("a*c", "abbc", true),
            ("a*c", "abbcd", false),
            ("*b*d", "abcbcd", true),
            ("*b*d", "abcbc", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("?", "ü", true),
            ("*ü", "aüü", true),
            ("**", "", true),
            ("[ab]", "a", false),
            ("[ab]\\", "[ab]\\", true),
        ];
        for (pattern, name, expected) in cases {
            let pattern = Pattern::new(pattern).unwrap();
            assert_eq!(pattern.matches(name), expected, "{pattern} of {name}");
        }
    }

    #[test]
    fn literal_prefix_ends_at_the_first_wildcard() {
        for (pattern, prefix) in [
            ("a/*", "a/"),
            ("a?b*", "a"),
            ("*", ""),
            ("deploy", "deploy"),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().prefix(), prefix);
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let stars = "*a".repeat(200);
        let name = "a".repeat(400);
        assert!(Pattern::new(stars.clone() + "*").unwrap().matches(&name));
        assert!(!Pattern::new(stars + "b").unwrap().matches(&name));
    }

    #[test]
    fn what_no_name_can_match_is_refused() {
        for (text, rule) in [
            (String::new(), "is empty"),
            ("x".repeat(513), "has 513 bytes"),
            ("a\nb".into(), "control character '\\n'"),
        ] {
            let error = Pattern::new(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(rule), "{error}");
        }
    }
}
