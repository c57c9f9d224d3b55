use super::Value;

/// Why the bytes of a server cannot be read further. The connection is unusable after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// The bytes do not follow the protocol.
    Malformed,
    /// The value has at least this many bytes, more than [`Parser::VALUE_MAX`].
    TooLong(usize),
}

/// Reads values from the bytes of a connection, however they are split.
///
/// It supports RESP2 and RESP3. It checks announced lengths and counts against [`Parser::VALUE_MAX`], and
/// reserves memory only for what arrived. It reads the items of a long value at most twice, however many
/// pieces they arrive in.
#[derive(Debug)]
pub struct Parser {
    buffer: Vec<u8>,
    /// The start of the bytes that were received and not yet read.
    start: usize,
    end: usize,
    /// Follows the value at `start` while part of it is missing.
    scan: Option<Scan>,
}

/// The longest line, and the deepest nesting. No reply to our commands exceeds them.
const LINE_MAX: usize = 64 * 1024;
const DEPTH_MAX: usize = 16;

/// How much is kept of the text of an error. Requests and logs have copies of it.
const ERROR_MAX: usize = 1024;

/// The shortest item has a kind and the end of a line.
const ITEM_MIN: usize = 3;

/// The most items to reserve memory for before they arrive.
const RESERVED_ITEMS: usize = 64;

/// The usual size of the buffer. It grows only for a longer value.
const ROOM: usize = 64 * 1024;

impl Parser {
    /// The longest value in bytes. Our longest ones are records, of 1 MiB, and pages of keys.
    pub const VALUE_MAX: usize = 8 * 1024 * 1024;

    /// Returns a parser without bytes.
    pub fn new() -> Self {
        Self::with_room(ROOM)
    }

    /// Returns a parser whose buffer has at first room for this many bytes, at least one.
    pub fn with_room(room: usize) -> Self {
        Self {
            buffer: vec![0; room.max(1)],
            start: 0,
            end: 0,
            scan: None,
        }
    }

    /// Returns room for the next bytes. It is never empty. Call [`Parser::filled`] afterwards.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > ROOM {
                self.buffer = vec![0; ROOM];
            }
        } else if self.end == self.buffer.len() {
            // Moving at least half the buffer, or doubling it, costs little for each byte.
            if self.start >= self.buffer.len() / 2 {
                self.buffer.copy_within(self.start.., 0);
                (self.start, self.end) = (0, self.end - self.start);
            } else {
                self.buffer.resize(2 * self.buffer.len(), 0);
            }
        }
        &mut self.buffer[self.end..]
    }

    /// Takes in `count` bytes that were written to [`Parser::room`].
    pub fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// Returns the bytes that were received and not yet read.
    #[inline]
    pub fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Skips whole values, which the caller read from [`Parser::unread`].
    #[inline]
    pub fn skip(&mut self, length: usize) {
        self.scan = None;
        self.start = (self.start + length).min(self.end);
    }

    /// Returns the next value, or `None` if part of it is still to come.
    ///
    /// # Errors
    ///
    /// If the bytes do not follow the protocol, or the value is too long. Each later call fails, too.
    pub fn next_value(&mut self) -> Result<Option<Value>, ParseError> {
        let bytes = &self.buffer[self.start..self.end];
        let is_whole = match &mut self.scan {
            Some(scan) => scan.is_whole(bytes),
            None => Ok(!bytes.is_empty()),
        };
        let read = match is_whole {
            Ok(true) => read(bytes),
            Ok(false) => Err(Stop::Incomplete),
            Err(stop) => Err(stop),
        };
        match read {
            Ok((value, length)) => {
                self.scan = None;
                self.start += length;
                Ok(Some(value))
            }
            Err(Stop::Incomplete) if bytes.len() > Self::VALUE_MAX => {
                Err(ParseError::TooLong(bytes.len()))
            }
            Err(Stop::Incomplete) => {
                if !bytes.is_empty() {
                    self.scan.get_or_insert_default();
                }
                Ok(None)
            }
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

/// Why no value was read.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// The rest is still to come.
    Incomplete,
    Failed(ParseError),
}

const MALFORMED: Stop = Stop::Failed(ParseError::Malformed);

/// Reads the first value in `bytes`. Also returns its length.
fn read(bytes: &[u8]) -> Result<(Value, usize), Stop> {
    let mut reader = Reader { bytes, at: 0 };
    let value = match bytes.first() {
        Some(b'>') => {
            reader.at = 1;
            Value::Push(reader.array(1)?.ok_or(MALFORMED)?)
        }
        _ => reader.value(0)?,
    };
    Ok((value, reader.at))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Value, Stop> {
        if depth > DEPTH_MAX {
            return Err(MALFORMED);
        }
        let kind = *self.bytes.get(self.at).ok_or(Stop::Incomplete)?;
        self.at += 1;
        Ok(match kind {
            b'$' => self
                .blob()?
                .map_or(Value::Null, |blob| Value::Bytes(blob.to_vec())),
            b':' => Value::Integer(number(self.line()?)?),
            b'+' => Value::Simple(String::from_utf8_lossy(self.line()?).into_owned()),
            b'*' | b'~' => self.array(depth + 1)?.map_or(Value::Null, Value::Array),
            b'%' => Value::Map(self.pairs(depth + 1)?),
            b',' => Value::Double(number(self.line()?)?),
            b'_' => self.line().map(|_| Value::Null)?,
            b'#' => Value::Integer(i64::from(self.line()? == b"t")),
            b'-' => error(self.line()?),
            b'!' => error(self.blob()?.ok_or(MALFORMED)?),
            // The first four bytes say how to show the text.
            b'=' => {
                let blob = self.blob()?.ok_or(MALFORMED)?;
                Value::Bytes(blob.get(4..).ok_or(MALFORMED)?.to_vec())
            }
            // A big number: its digits.
            b'(' => Value::Bytes(self.line()?.to_vec()),
            // Attributes come before a value. No reply to our commands has any.
            b'|' => {
                self.pairs(depth + 1)?;
                self.value(depth + 1)?
            }
            _ => return Err(MALFORMED),
        })
    }

    fn array(&mut self, depth: usize) -> Result<Option<Vec<Value>>, Stop> {
        let Some(count) = self.count(1)? else {
            return Ok(None);
        };
        let mut items = Vec::with_capacity(count.min(RESERVED_ITEMS));
        for _ in 0..count {
            items.push(self.value(depth)?);
        }
        Ok(Some(items))
    }

    fn pairs(&mut self, depth: usize) -> Result<Vec<(Value, Value)>, Stop> {
        let count = self.count(2)?.ok_or(MALFORMED)?;
        let mut pairs = Vec::with_capacity(count.min(RESERVED_ITEMS));
        for _ in 0..count {
            pairs.push((self.value(depth)?, self.value(depth)?));
        }
        Ok(pairs)
    }

    /// Skips an item, except for the items in it. Returns how many these are.
    fn skip(&mut self) -> Result<usize, Stop> {
        let kind = *self.bytes.get(self.at).ok_or(Stop::Incomplete)?;
        self.at += 1;
        Ok(match kind {
            b'$' | b'!' | b'=' => self.blob().map(|_| 0)?,
            b'*' | b'~' | b'>' => self.count(1)?.unwrap_or(0),
            b'%' => 2 * self.count(2)?.unwrap_or(0),
            // The value follows its attributes.
            b'|' => 2 * self.count(2)?.unwrap_or(0) + 1,
            _ => self.line().map(|_| 0)?,
        })
    }

    /// Reads a text with its length in front; `None` if the length is negative.
    fn blob(&mut self) -> Result<Option<&'a [u8]>, Stop> {
        let Some(length) = self.length()? else {
            return Ok(None);
        };
        self.check_room(length)?;
        let rest = &self.bytes[self.at..];
        let (Some(blob), Some(end)) = (rest.get(..length), rest.get(length..length + 2)) else {
            return Err(Stop::Incomplete);
        };
        if end != b"\r\n" {
            return Err(MALFORMED);
        }
        self.at += length + 2;
        Ok(Some(blob))
    }

    /// Reads how many elements follow, each with this number of items; `None` if the count is negative.
    fn count(&mut self, items: usize) -> Result<Option<usize>, Stop> {
        let count = self.length()?;
        let least = count.unwrap_or(0).saturating_mul(items * ITEM_MIN);
        self.check_room(least)?;
        Ok(count)
    }

    fn length(&mut self) -> Result<Option<usize>, Stop> {
        match self.line()? {
            b"-1" => Ok(None),
            line => number(line).map(Some),
        }
    }

    /// Refuses a value that would exceed the limit with at least `length` more bytes.
    fn check_room(&self, length: usize) -> Result<(), Stop> {
        match self.at.saturating_add(length) {
            0..=Parser::VALUE_MAX => Ok(()),
            least => Err(Stop::Failed(ParseError::TooLong(least))),
        }
    }

    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.bytes[self.at..];
        let rest = &rest[..rest.len().min(LINE_MAX)];
        match rest.iter().position(|byte| *byte == b'\n') {
            Some(end) if end > 0 && rest[end - 1] == b'\r' => {
                self.at += end + 1;
                Ok(&rest[..end - 1])
            }
            None if rest.len() < LINE_MAX => Err(Stop::Incomplete),
            _ => Err(MALFORMED),
        }
    }
}

/// Follows a value that arrives in pieces, without reading a whole item twice.
#[derive(Debug)]
struct Scan {
    /// The end of the whole items so far.
    at: usize,
    /// How many items are still to come.
    left: usize,
    /// How many bytes there were at the last call. Every item ends with a line feed after them.
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
    /// Returns whether the value is complete. `bytes` are those of the last call and those that follow.
    fn is_whole(&mut self, bytes: &[u8]) -> Result<bool, Stop> {
        let is_more = bytes[self.searched..].contains(&b'\n');
        self.searched = bytes.len();
        while is_more && self.left > 0 {
            let mut reader = Reader { bytes, at: self.at };
            match reader.skip() {
                Ok(inside) => self.left = self.left - 1 + inside,
                Err(Stop::Incomplete) => break,
                Err(stop) => return Err(stop),
            }
            self.at = reader.at;
        }
        Ok(self.left == 0)
    }
}

fn error(line: &[u8]) -> Value {
    let line = String::from_utf8_lossy(&line[..line.len().min(ERROR_MAX)]);
    let (code, message) = line.split_once(' ').unwrap_or((&line, ""));
    Value::error(code, message)
}

fn number<T: std::str::FromStr>(line: &[u8]) -> Result<T, Stop> {
    let text = std::str::from_utf8(line).map_err(|_| MALFORMED)?;
    text.parse().map_err(|_| MALFORMED)
}

#[cfg(test)]
#[path = "parser_tests.rs"]
mod tests;
