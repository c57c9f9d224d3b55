//! What a server says, read byte by byte: RESP2 and RESP3 (the "Redis serialization protocol
//! specification").

use super::answer::{Answer, Refusal};

/// One whole thing that a server said.
#[derive(Debug, PartialEq)]
pub(super) enum Reply {
    /// To the oldest command that is not answered yet.
    Answer(Answer),
    /// Unasked.
    Push(Vec<Answer>),
}

/// Why nothing was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// The rest is still to come.
    Incomplete,
    /// It is not of the protocol.
    Malformed,
    /// It has at least this many bytes, more than [`REPLY_MAX`].
    TooLong(usize),
}

/// Longest line, deepest nesting and longest reply that are believed: none of our commands is
/// answered with more. The largest are records, of 1 MiB, and pages of keys.
const LINE_MAX: usize = 64 * 1024;
const DEPTH_MAX: usize = 16;
pub(super) const REPLY_MAX: usize = 8 * 1024 * 1024;

/// The shortest item has a kind and the end of a line.
const ITEM_MIN: usize = 3;

/// Room for the items of most replies. A server may announce any number, and send none.
const USUAL_ITEMS: usize = 64;

/// Reads the first reply in `bytes`, and says how long it is.
pub(super) fn read(bytes: &[u8]) -> Result<(Reply, usize), Unread> {
    let mut reader = Reader { bytes, at: 0 };
    let reply = reader.reply()?;
    Ok((reply, reader.at))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn reply(&mut self) -> Result<Reply, Unread> {
        if self.bytes.get(self.at) != Some(&b'>') {
            return self.answer(0).map(Reply::Answer);
        }
        self.at += 1;
        let count = self.count()?.ok_or(Unread::Malformed)?;
        let parts = self.items(count, 1)?;
        // What confirms a subscription comes as a push, and answers a command all the same.
        Ok(match parts.first().and_then(Answer::as_text) {
            Some("subscribe") => Reply::Answer(Answer::List(parts)),
            _ => Reply::Push(parts),
        })
    }

    fn answer(&mut self, depth: usize) -> Result<Answer, Unread> {
        if depth > DEPTH_MAX {
            return Err(Unread::Malformed);
        }
        let kind = *self.bytes.get(self.at).ok_or(Unread::Incomplete)?;
        self.at += 1;
        match kind {
            b'$' => Ok(self.blob()?.map_or(Answer::Nil, text)),
            b':' => Ok(Answer::Integer(number(self.line()?)?)),
            b'+' => Ok(match self.line()? {
                b"OK" => Answer::Done,
                line => text(line),
            }),
            b'*' | b'~' => match self.count()? {
                Some(count) => Ok(Answer::List(self.items(count, depth + 1)?)),
                None => Ok(Answer::Nil),
            },
            b',' => Ok(Answer::Double(number(self.line()?)?)),
            b'_' => self.line().map(|_| Answer::Nil),
            b'#' => Ok(Answer::Integer(i64::from(self.line()? == b"t"))),
            b'-' => Ok(refused(self.line()?)),
            b'!' => Ok(refused(self.blob()?.ok_or(Unread::Malformed)?)),
            // Its first four bytes say how to show it.
            b'=' => {
                let blob = self.blob()?.ok_or(Unread::Malformed)?;
                Ok(text(blob.get(4..).ok_or(Unread::Malformed)?))
            }
            b'%' => {
                let pairs = self.count()?.ok_or(Unread::Malformed)?;
                Ok(Answer::List(self.items(2 * pairs, depth + 1)?))
            }
            b'|' => {
                let pairs = self.count()?.ok_or(Unread::Malformed)?;
                self.items(2 * pairs, depth + 1)?;
                self.answer(depth + 1)
            }
            b'(' => self.line().map(|_| Answer::Strange),
            _ => Err(Unread::Malformed),
        }
    }

    fn items(&mut self, count: usize, depth: usize) -> Result<Vec<Answer>, Unread> {
        self.fits(count * ITEM_MIN)?;
        let mut items = Vec::with_capacity(count.min(USUAL_ITEMS));
        for _ in 0..count {
            items.push(self.answer(depth)?);
        }
        Ok(items)
    }

    /// Passes over an item, but for the items in it: how many these are.
    fn skip(&mut self) -> Result<usize, Unread> {
        let kind = *self.bytes.get(self.at).ok_or(Unread::Incomplete)?;
        self.at += 1;
        match kind {
            b'$' | b'!' | b'=' => self.blob().map(|_| 0),
            b'*' | b'~' | b'>' => Ok(self.count()?.unwrap_or(0)),
            b'%' => Ok(2 * self.count()?.unwrap_or(0)),
            // An attribute comes before its item.
            b'|' => Ok(2 * self.count()?.unwrap_or(0) + 1),
            _ => self.line().map(|_| 0),
        }
    }

    /// A text with its length in front; nothing where that is negative.
    fn blob(&mut self) -> Result<Option<&'a [u8]>, Unread> {
        let Some(length) = self.length()? else {
            return Ok(None);
        };
        self.fits(length)?;
        let rest = &self.bytes[self.at..];
        let (blob, end) = (rest.get(..length), rest.get(length..length + 2));
        let (Some(blob), Some(end)) = (blob, end) else {
            return Err(Unread::Incomplete);
        };
        if end != b"\r\n" {
            return Err(Unread::Malformed);
        }
        self.at += length + 2;
        Ok(Some(blob))
    }

    fn length(&mut self) -> Result<Option<usize>, Unread> {
        let line = self.line()?;
        if line == b"-1" {
            return Ok(None);
        }
        number(line).map(Some)
    }

    /// How many items, or pairs of them, follow.
    fn count(&mut self) -> Result<Option<usize>, Unread> {
        let count = self.length()?;
        // Twice as many are counted without overflow from here on.
        self.fits(count.unwrap_or(0))?;
        Ok(count)
    }

    fn fits(&self, length: usize) -> Result<(), Unread> {
        match self.at.saturating_add(length) {
            0..=REPLY_MAX => Ok(()),
            more => Err(Unread::TooLong(more)),
        }
    }

    fn line(&mut self) -> Result<&'a [u8], Unread> {
        let rest = &self.bytes[self.at..];
        let rest = &rest[..rest.len().min(LINE_MAX)];
        match rest.iter().position(|byte| *byte == b'\n') {
            Some(end) if end > 0 && rest[end - 1] == b'\r' => {
                self.at += end + 1;
                Ok(&rest[..end - 1])
            }
            None if rest.len() < LINE_MAX => Err(Unread::Incomplete),
            _ => Err(Unread::Malformed),
        }
    }
}

/// Follows a reply that comes in pieces to its end, without reading any piece twice.
#[derive(Debug)]
pub(super) struct Scan {
    /// How many bytes of the reply are known to be whole items.
    at: usize,
    /// How many items are still to come.
    left: usize,
    /// How many bytes were here when the scan stopped: every item ends with a line feed behind them.
    searched: usize,
}

impl Default for Scan {
    fn default() -> Self {
        Self {
            at: 0,
            left: 1,
            searched: 0,
        }
    }
}

impl Scan {
    /// Whether `bytes` has the whole reply. They are those of the last call, and more behind them.
    pub(super) fn is_whole(&mut self, bytes: &[u8]) -> Result<bool, Unread> {
        let is_news = bytes[self.searched..].contains(&b'\n');
        self.searched = bytes.len();
        while is_news && self.left > 0 {
            let mut reader = Reader { bytes, at: self.at };
            match reader.skip() {
                Ok(inside) => self.left = self.left - 1 + inside,
                Err(Unread::Incomplete) => break,
                Err(unread) => return Err(unread),
            }
            self.at = reader.at;
        }
        Ok(self.left == 0)
    }
}

fn text(bytes: &[u8]) -> Answer {
    Answer::Text(bytes.to_vec())
}

fn refused(line: &[u8]) -> Answer {
    let line = String::from_utf8_lossy(line);
    let (code, text) = line.split_once(' ').unwrap_or((&line, ""));
    Answer::Refused(Refusal::new(code, text))
}

fn number<T: std::str::FromStr>(line: &[u8]) -> Result<T, Unread> {
    let text = std::str::from_utf8(line).map_err(|_| Unread::Malformed)?;
    text.parse().map_err(|_| Unread::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(said: &str) -> Answer {
        match read(said.as_bytes()) {
            Ok((Reply::Answer(answer), length)) if length == said.len() => answer,
            other => panic!("{said:?}: {other:?}"),
        }
    }

    fn texts(words: &[&str]) -> Answer {
        Answer::List(words.iter().map(|word| text(word.as_bytes())).collect())
    }

    #[test]
    fn both_protocols_are_understood_alike() {
        assert_eq!(answer("$-1\r\n"), answer("_\r\n"));
        assert_eq!(answer("*-1\r\n"), Answer::Nil);
        assert_eq!(answer("+OK\r\n"), Answer::Done);
        assert_eq!(answer("=8\r\ntxt:role\r\n"), answer("$4\r\nrole\r\n"));
        let flat = answer("*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n+2\r\n");
        assert_eq!(answer("%2\r\n+a\r\n+1\r\n+b\r\n+2\r\n"), flat);
        assert_eq!(flat, texts(&["a", "1", "b", "2"]));
        assert_eq!(answer("~1\r\n$1\r\na\r\n"), texts(&["a"]));
        assert_eq!(answer("#t\r\n"), Answer::Integer(1));
        assert_eq!(answer(":-2\r\n"), Answer::Integer(-2));
        assert_eq!(answer("|1\r\n+ttl\r\n:3\r\n:7\r\n"), Answer::Integer(7));
        assert_eq!(answer("(123\r\n"), Answer::Strange);
        for score in [",9007199254740991\r\n", "$16\r\n9007199254740991\r\n"] {
            assert_eq!(answer(score).as_score(), Some(9_007_199_254_740_991.0));
        }
        assert_eq!(answer(",1.5e+3\r\n"), Answer::Double(1500.0));
    }

    #[test]
    fn refusals_have_a_code_and_a_text() {
        let refusal = Answer::Refused(Refusal::new("NOPERM", "no way"));
        assert_eq!(answer("-NOPERM no way\r\n"), refusal);
        assert_eq!(answer("!13\r\nNOPERM no way\r\n"), refusal);
        let bare = Answer::Refused(Refusal::new("ERR", ""));
        assert_eq!(answer("-ERR\r\n"), bare);
    }

    #[test]
    fn pushes_are_no_answers_but_the_one_that_confirms_a_subscription() {
        let message = b">3\r\n+message\r\n+inbox\r\n+hello\r\n";
        let Ok((Reply::Push(parts), length)) = read(message) else {
            panic!("no push")
        };
        assert_eq!(
            (Answer::List(parts), length),
            (texts(&["message", "inbox", "hello"]), message.len())
        );
        let confirmed = answer(">3\r\n+subscribe\r\n+inbox\r\n:1\r\n");
        assert!(matches!(confirmed, Answer::List(_)));
    }

    #[test]
    fn nothing_is_read_of_a_reply_that_is_not_whole() {
        let said = b"*3\r\n$5\r\nhello\r\n%1\r\n+a\r\n:1\r\n-ERR no\r\n:7\r\n";
        let whole = said.len() - 4;
        for end in 0..whole {
            assert_eq!(read(&said[..end]), Err(Unread::Incomplete), "{end}");
        }
        assert_eq!(read(said).unwrap().1, whole);
    }

    #[test]
    fn pieces_are_followed_to_the_end_of_a_reply() {
        for said in [
            "+OK\r\n",
            "*3\r\n$5\r\nhello\r\n%1\r\n+a\r\n:1\r\n-ERR no\r\n",
            "|1\r\n+ttl\r\n:3\r\n*2\r\n*-1\r\n$-1\r\n",
            ">2\r\n$4\r\n\r\n\r\n\r\n=5\r\ntxt:a\r\n",
            "*0\r\n",
        ] {
            let mut scan = Scan::default();
            for end in 0..said.len() {
                assert_eq!(
                    scan.is_whole(&said.as_bytes()[..end]),
                    Ok(false),
                    "{said:?}"
                );
            }
            let more = format!("{said}:7\r\n");
            assert_eq!(scan.is_whole(more.as_bytes()), Ok(true), "{said:?}");
            assert_eq!(scan.at, said.len(), "{said:?}");
        }
    }

    #[test]
    fn what_is_not_of_the_protocol_is_refused() {
        let deep = "*1\r\n".repeat(DEPTH_MAX + 2);
        let long = format!("+{}", "x".repeat(LINE_MAX));
        for wrong in [
            "HTTP/1.1 400 Bad Request\r\n",
            "$3\r\nabcde",
            "$-2\r\n",
            "*-1x\r\n",
            "$99999999999999999999\r\n",
            ":seven\r\n",
            "+a\n",
            "%-1\r\n",
            "=2\r\nab\r\n",
            &deep,
            &long,
        ] {
            assert_eq!(read(wrong.as_bytes()), Err(Unread::Malformed), "{wrong:?}");
        }
    }
}
