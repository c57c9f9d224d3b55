//! Checks the names of locks.

use std::str::FromStr;

use super::error::{Error, ErrorKind};
use super::key::Key;
use super::printable::unprintable;

impl Key {
    /// Validates `name` and returns it as a key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], naming the value and the rule that it breaks.
    pub fn new(name: impl AsRef<str>) -> Result<Self, Error> {
        let name = name.as_ref();
        let refuse = |rule: String| Err(Error::new(ErrorKind::InvalidInput, rule));
        if name.is_empty() {
            return refuse("lock name is empty; give at least one character".into());
        }
        if name.len() > Self::MAX_BYTES {
            let start: String = name.chars().take(32).collect();
            return refuse(format!(
                "lock name {start:?}… has {} bytes; the maximum is {}",
                name.len(),
                Self::MAX_BYTES
            ));
        }
        if let Some(character) = unprintable(name) {
            return refuse(format!(
                "lock name {name:?} contains {character}, which is not allowed"
            ));
        }
        if name.starts_with(Self::RESERVED_PREFIX) {
            return refuse(format!(
                "lock name {name:?} begins with {:?}, which is reserved for the records of stores",
                Self::RESERVED_PREFIX
            ));
        }
        Ok(Self(name.into()))
    }
}

impl FromStr for Key {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::new(name)
    }
}

impl TryFrom<&str> for Key {
    type Error = Error;

    fn try_from(name: &str) -> Result<Self, Error> {
        Self::new(name)
    }
}

impl TryFrom<String> for Key {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        Self::new(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str) -> String {
        let error = Key::new(name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    }

    #[test]
    fn each_rule_is_named_with_the_value() {
        assert!(refusal("").contains("lock name is empty"));
        assert!(refusal("a\0b").contains(r#""a\0b" contains the control character '\0'"#));
        assert!(refusal("a\nb").contains("control character"));
        let reversed = refusal("\u{202e}desrever");
        assert!(
            reversed.contains(r#""\u{202e}desrever" contains the format character '\u{202e}'"#),
            "{reversed}"
        );
        assert!(refusal("leasehold:member_record").contains("reserved"));
        let long = refusal(&"x".repeat(513));
        assert!(long.contains("513 bytes; the maximum is 512"), "{long}");
    }

    #[test]
    fn the_longest_name_and_any_script_are_accepted() {
        assert!(Key::new("x".repeat(512)).is_ok());
        assert_eq!(Key::new("Ключ/鍵 {tag}").unwrap().as_str(), "Ключ/鍵 {tag}");
    }

    #[test]
    fn conversions_check_the_same_rules() {
        assert_eq!("deploy".parse::<Key>().unwrap().as_ref(), "deploy");
        assert_eq!(Key::try_from("deploy").unwrap().to_string(), "deploy");
        assert!(Key::try_from(String::new()).is_err());
        assert!("a\0b".parse::<Key>().is_err());
    }
}
