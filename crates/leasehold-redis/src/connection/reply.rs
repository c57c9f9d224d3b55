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
}

/// Longest line, deepest nesting and longest text that are believed: none of our commands is
/// answered with more.
const LINE_MAX: usize = 64 * 1024;
const DEPTH_MAX: usize = 16;
const LENGTH_MAX: usize = 512 * 1024 * 1024;

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
        let count = self.length()?.ok_or(Unread::Malformed)?;
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
            b'*' | b'~' => match self.length()? {
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
                let pairs = self.length()?.ok_or(Unread::Malformed)?;
                Ok(Answer::List(self.items(2 * pairs, depth + 1)?))
            }
            b'|' => {
                let pairs = self.length()?.ok_or(Unread::Malformed)?;
                self.items(2 * pairs, depth + 1)?;
                self.answer(depth + 1)
            }
            b'(' => self.line().map(|_| Answer::Strange),
            _ => Err(Unread::Malformed),
        }
    }

    fn items(&mut self, count: usize, depth: usize) -> Result<Vec<Answer>, Unread> {
        // What is announced need not come: each item is at least three bytes long.
        let mut items = Vec::with_capacity(count.min(self.bytes.len() / 3));
        for _ in 0..count {
            items.push(self.answer(depth)?);
        }
        Ok(items)
    }

    /// A text with its length in front; nothing where that is negative.
    fn blob(&mut self) -> Result<Option<&'a [u8]>, Unread> {
        let Some(length) = self.length()? else {
            return Ok(None);
        };
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
        let length = number(line)?;
        match length {
            0..=LENGTH_MAX => Ok(Some(length)),
            _ => Err(Unread::Malformed),
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
    fn what_is_not_of_the_protocol_is_refused() {
        let deep = "*1\r\n".repeat(DEPTH_MAX + 2);
        let long = format!("+{}", "x".repeat(LINE_MAX));
        for wrong in [
            "HTTP/1.1 400 Bad Request\r\n",
            "$3\r\nabcde",
            "$-2\r\n",
            "*-1x\r\n",
            "$600000000\r\n",
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
