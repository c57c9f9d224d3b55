//! What the server shows of itself beside every answer.

use leasehold::clock::WallTime;
use leasehold::{Error, Life, Mark, Sample};

use crate::attempt::garbled;
use crate::card::MARK;
use crate::connection::{Answer, Command, Link, Rights, read_time, wall_time};
use crate::wire::CARD;

/// Asked in the same write as the requests that are sampled, once behind all of them.
///
/// The mark is read after all else that the requests do: a server that lost its data in the midst
/// of one then shows no mark, or another one, since none ever comes back. What is true of the last
/// request is true of each one before it.
pub(crate) fn questions() -> [Command; 2] {
    let mark = Command::new("HGET").arg(CARD).arg(MARK);
    [mark, Command::new("TIME")]
}

/// Reads the answers to [`questions`] on `link`.
///
/// A mark that may not be read, or that is none, counts as no mark: it differs from the card's, and
/// how the server is says why.
pub(crate) fn read(link: &Link, answers: &[Answer]) -> Result<Sample, Error> {
    let [mark, time] = answers else {
        return Err(garbled("TIME"));
    };
    if let Answer::Refused(refusal) = time {
        return Err(refusal.to_error(link.user(), Rights("+time")));
    }
    let clock = read_time(time).ok_or_else(|| garbled("TIME"))?;
    Ok(sample(link, clock, mark))
}

/// Reads what a script on `link` shows by itself: seconds, microseconds, and the mark or nothing.
pub(crate) fn read_seen(link: &Link, seen: &[Answer]) -> Option<Sample> {
    let [seconds, micros, mark, ..] = seen else {
        return None;
    };
    // As HGET says it, or every change between the two would look like another set of data.
    let no_mark = mark.as_text() == Some("");
    let mark = if no_mark { &Answer::Nil } else { mark };
    Some(sample(link, wall_time(seconds, micros)?, mark))
}

fn sample(link: &Link, clock: WallTime, mark: &Answer) -> Sample {
    Sample {
        clock,
        incarnation: link.incarnation(mark, read_mark),
    }
}

pub(crate) fn read_mark(text: &str) -> Option<Mark> {
    let (life, generation) = text.split_once('.')?;
    let mark = Mark::of(Life::parse(life)?, generation.parse().ok()?);
    (mark.as_str() == text).then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let mark = Mark::of(Life::parse("0123456789abcdef").unwrap(), 7);
        assert_eq!(read_mark(mark.as_str()), Some(mark));
        for wrong in ["", "7", "0123456789abcdef", "0123456789abcdef.+7", "x.7"] {
            assert_eq!(read_mark(wrong), None, "{wrong}");
        }
    }
}
