use std::borrow::Cow;

use crate::failure::Failure;
use crate::number;

/// A reply of the server, or a message that it pushed.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A simple string, such as `OK`.
    Simple(Cow<'static, str>),
    /// An error; its first word is the code.
    Error(Cow<'static, str>),
    /// An integer.
    Integer(i64),
    /// A floating-point number: a double in RESP3, text in RESP2.
    Double(f64),
    /// A string of bytes.
    Bulk(Vec<u8>),
    /// No value.
    Nil,
    /// A list of replies.
    Array(Vec<Self>),
    /// Pairs: a map in RESP3, a flat list in RESP2.
    Map(Vec<(Self, Self)>),
    /// A message that is not a reply: a push in RESP3, a list in RESP2.
    Push(Vec<Self>),
}

impl Reply {
    pub(crate) const OK: Self = Self::Simple(Cow::Borrowed("OK"));

    pub(crate) fn bulk(bytes: impl AsRef<[u8]>) -> Self {
        Self::Bulk(bytes.as_ref().to_vec())
    }

    pub(crate) fn bulk_or_nil(bytes: Option<impl AsRef<[u8]>>) -> Self {
        bytes.map_or(Self::Nil, Self::bulk)
    }

    pub(crate) fn count(number: usize) -> Self {
        Self::Integer(number as i64)
    }

    pub(crate) fn flag(is_set: bool) -> Self {
        Self::Integer(i64::from(is_set))
    }

    /// Converts the reply to RESP2: numbers with a fraction become text, maps and messages become lists.
    #[must_use]
    pub fn into_resp2(self) -> Self {
        let all = |items: Vec<Self>| items.into_iter().map(Self::into_resp2).collect();
        match self {
            Self::Double(number) => Self::Bulk(number::text(number).into_bytes()),
            Self::Array(items) | Self::Push(items) => Self::Array(all(items)),
            Self::Map(pairs) => {
                let items = pairs.into_iter().flat_map(|(key, value)| [key, value]);
                Self::Array(all(items.collect()))
            }
            other => other,
        }
    }

    /// Returns the code of an error: its first word.
    pub fn error_code(&self) -> Option<&str> {
        match self {
            Self::Error(text) => text.split(' ').next(),
            _ => None,
        }
    }
}

/// The answer of a command.
pub(crate) type Outcome = Result<Reply, Failure>;

impl From<Outcome> for Reply {
    fn from(outcome: Outcome) -> Self {
        outcome.unwrap_or_else(|failure| Self::Error(failure.0))
    }
}
