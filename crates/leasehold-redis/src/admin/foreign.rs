//! What the value of another library's lock looks like.

/// The form of a value that this library did not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Number,
    Hex32,
    Uuid,
    Base64,
    Text,
    /// A value of another type than string.
    Hash,
    OtherType,
}

impl Form {
    /// The form of a string.
    pub(crate) fn of(value: &[u8]) -> Self {
        let all = |allowed: fn(&u8) -> bool| !value.is_empty() && value.iter().all(allowed);
        let is_base64 = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
        };
        if all(u8::is_ascii_digit) {
            return Self::Number;
        }
        match value.len() {
            32 if all(u8::is_ascii_hexdigit) => Self::Hex32,
            36 if is_uuid(value) => Self::Uuid,
            22..=24 if all(is_base64) => Self::Base64,
            _ => Self::Text,
        }
    }

    /// The form of a value of this type, as `TYPE` names it.
    pub(crate) fn of_type(kind: &str) -> Self {
        match kind {
            "hash" => Self::Hash,
            _ => Self::OtherType,
        }
    }

    /// The form in a few words, with the libraries that write such values.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Number => "a number, as Redisson's semaphores and plain counters are",
            Self::Hex32 => "32 hex digits, as redis-py and node-redlock write them",
            Self::Uuid => "a UUID, as Spring Integration writes it",
            Self::Base64 => "a random token, as redsync, bsm/redislock and redlock-py write it",
            Self::Text => "a text of no known lock library",
            Self::Hash => "a hash, as Redisson's locks are",
            Self::OtherType => "neither a string nor a hash, which no known lock library writes",
        }
    }
}

fn is_uuid(value: &[u8]) -> bool {
    value.iter().enumerate().all(|(place, byte)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_known_libraries_are_told_apart() {
        for (value, form) in [
            ("1", Form::Number),
            ("2f1c7c0ad3c911f08de90242ac120002", Form::Hex32),
            ("2f1c7c0a-d3c9-11f0-8de9-0242ac120002", Form::Uuid),
            ("q83vEjRWeJCrze8SNFZ4kA==", Form::Base64),
            ("q83vEjRWeJCrze8SNFZ4kA", Form::Base64),
            ("", Form::Text),
            ("by ann", Form::Text),
            ("2f1c7c0axd3c9-11f0-8de9-0242ac120002", Form::Text),
        ] {
            assert_eq!(Form::of(value.as_bytes()), form, "{value:?}");
        }
    }
}
