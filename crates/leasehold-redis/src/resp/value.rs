/// A value that a server sent: a reply, or a message that it pushed.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// A whole number.
    Integer(i64),
    /// A string of bytes.
    Bytes(Vec<u8>),
    /// A simple string, such as `OK`.
    Simple(String),
    /// An error: a code in capitals, and a text for people.
    Error {
        /// The code, such as `WRONGTYPE`.
        code: String,
        /// The text behind the code.
        message: String,
    },
    /// Several values. RESP2 sends a map as keys and values by turns.
    Array(Vec<Self>),
    /// A floating-point number. RESP2 sends it as bytes.
    Double(f64),
    /// A message that is not a reply, such as one from a channel.
    Push(Vec<Self>),
    /// Keys with their values.
    Map(Vec<(Self, Self)>),
}

impl Value {
    /// Returns an error value.
    pub fn error(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Error {
            code: code.into(),
            message: message.into(),
        }
    }

    /// Returns the bytes of a string, simple or not.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Simple(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// Returns a string that is UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()?).ok()
    }

    /// Returns a whole number.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a number of any form: an integer, a double, or a text in decimal.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Double(number) => Some(*number),
            _ => self.as_text()?.parse().ok(),
        }
    }

    /// Returns the items of an array.
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns keys with their values, from a map or from an array of keys and values by turns.
    pub fn as_pairs(&self) -> Option<Vec<(&Self, &Self)>> {
        match self {
            Self::Map(pairs) => Some(pairs.iter().map(|(key, value)| (key, value)).collect()),
            Self::Array(items) => {
                let pairs = items.chunks_exact(2);
                Some(pairs.map(|pair| (&pair[0], &pair[1])).collect())
            }
            _ => None,
        }
    }

    /// Returns whether this is an error with this code.
    pub fn is_error(&self, wanted: &str) -> bool {
        matches!(self, Self::Error { code, .. } if code == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_in_both_forms() {
        let (key, value) = (Value::Integer(1), Value::Null);
        let map = Value::Map(vec![(key.clone(), value.clone())]);
        let array = Value::Array(vec![key.clone(), value.clone()]);
        for pairs in [map, array] {
            assert_eq!(pairs.as_pairs(), Some(vec![(&key, &value)]));
        }
        assert_eq!(Value::Null.as_pairs(), None);
    }

    #[test]
    fn numbers_are_read_in_every_form() {
        for number in [
            Value::Integer(7),
            Value::Double(7.0),
            Value::Bytes(b"7".to_vec()),
            Value::Simple("7".into()),
        ] {
            assert_eq!(number.as_number(), Some(7.0), "{number:?}");
        }
        for other in [
            Value::Null,
            Value::Bytes(b"x".to_vec()),
            Value::error("ERR", "7"),
        ] {
            assert_eq!(other.as_number(), None, "{other:?}");
        }
    }
}
