use leasehold::clock::WallTime;

/// What a server answered to one command, of what the commands of this crate can be answered. The same
/// whichever protocol it speaks, but for [`Double`](Self::Double): maps are lists of keys and values by
/// turns, as the old protocol has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Answer {
    #[default]
    Nil,
    Done,
    Integer(i64),
    /// A score, exact up to 2^53; as text where the server speaks the old protocol.
    Double(f64),
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

impl Answer {
    /// A score of a ZSET.
    pub(crate) fn as_score(&self) -> Option<f64> {
        match self {
            Self::Double(score) => Some(*score),
            _ => self.as_text()?.parse().ok(),
        }
    }

    /// The answer to ZRANGE WITHSCORES: a list of members and scores by turns, or of pairs of them.
    /// What is not of this form is left out.
    pub(crate) fn as_scored(&self) -> Option<Vec<(&str, f64)>> {
        let items = self.as_list()?;
        let nested = items.iter().any(|item| item.as_list().is_some());
        Some(if nested {
            let pairs = items.iter().filter_map(Self::as_list);
            pairs.filter_map(scored).collect()
        } else {
            items.chunks(2).filter_map(scored).collect()
        })
    }
}

fn scored(pair: &[Answer]) -> Option<(&str, f64)> {
    match pair {
        [member, score] => Some((member.as_text()?, score.as_score()?)),
        _ => None,
    }
}

/// The answer to TIME.
pub(crate) fn read_time(answer: &Answer) -> Option<WallTime> {
    match answer.as_list() {
        Some([seconds, micros]) => wall_time(seconds, micros),
        _ => None,
    }
}

pub(crate) fn wall_time(seconds: &Answer, micros: &Answer) -> Option<WallTime> {
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

    #[test]
    fn scores_are_read_in_pairs_and_by_turns() {
        let by_turns = ["a", "1", "b", "2.5"].map(text);
        let pair = |name, score| Answer::List(vec![text(name), Answer::Double(score)]);
        let pairs = [pair("a", 1.0), pair("b", 2.5)];
        for answer in [by_turns.to_vec(), pairs.to_vec()] {
            let answer = Answer::List(answer);
            assert_eq!(answer.as_scored().unwrap(), [("a", 1.0), ("b", 2.5)]);
        }
        let odd = Answer::List(vec![text("a")]);
        assert!(odd.as_scored().unwrap().is_empty());
        assert_eq!(Answer::Nil.as_scored(), None);
    }
}
