use leasehold::clock::WallTime;
use redis::Value;

/// What a server answered to one command, of what the commands of this crate can be answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Nil,
    Done,
    Integer(i64),
    Text(Vec<u8>),
    List(Vec<Self>),
    Refused(Refusal),
    /// Anything that none of our commands can be answered with.
    Strange,
}

/// An error that a server answered: a code in capitals, and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            text: text.into(),
        }
    }

    /// The key holds a value of another data type than the command is for.
    pub(crate) fn is_wrong_type(&self) -> bool {
        // Before Redis 7.0 a script's error has its code within the text.
        self.code == "WRONGTYPE" || self.text.contains("WRONGTYPE")
    }

    /// The user may not do that, here or at all.
    pub(crate) fn is_missing_right(&self) -> bool {
        self.code == "NOPERM"
    }

    pub(super) fn is_unknown_script(&self) -> bool {
        self.code == "NOSCRIPT"
    }
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        match value {
            Value::Nil => Self::Nil,
            Value::Okay => Self::Done,
            Value::Int(number) => Self::Integer(number),
            Value::BulkString(bytes) => Self::Text(bytes),
            Value::SimpleString(text) => Self::Text(text.into_bytes()),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::ServerError(error) => Self::Refused(Refusal::new(
                error.code(),
                error.details().unwrap_or_default(),
            )),
            _ => Self::Strange,
        }
    }
}

impl Answer {
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

/// The answer to TIME.
pub(crate) fn read_time(answer: &Answer) -> Option<WallTime> {
    match answer.as_list() {
        Some([seconds, micros]) => wall_time(seconds, micros),
        _ => None,
    }
}

fn wall_time(seconds: &Answer, micros: &Answer) -> Option<WallTime> {
    let number = |answer: &Answer| answer.as_text()?.parse::<u64>().ok();
    let micros_since_1970 = number(seconds)?
        .checked_mul(1_000_000)?
        .checked_add(number(micros)?)?;
    Some(WallTime::from_micros(micros_since_1970))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Answer {
        Answer::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn the_servers_time_is_read_to_the_microsecond() {
        let time = Answer::List(vec![text("1763637400"), text("7")]);
        assert_eq!(
            read_time(&time),
            Some(WallTime::from_micros(1_763_637_400_000_007))
        );
        assert_eq!(read_time(&Answer::Nil), None);
    }
}
