//! Jute, the encoding of ZooKeeper's messages: big-endian numbers, and text and bytes after their length.

use std::fmt;

/// Appends values to a message.
#[derive(Debug, Default)]
pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    pub(crate) fn int(&mut self, value: i32) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn long(&mut self, value: i64) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn bool(&mut self, value: bool) -> &mut Self {
        self.0.push(value.into());
        self
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        // Nothing that this client sends comes near the limit of an `i32`.
        self.int(i32::try_from(value.len()).unwrap_or(i32::MAX));
        self.0.extend(value);
        self
    }

    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    /// Appends bytes without their length.
    pub(crate) fn raw(&mut self, value: &[u8]) -> &mut Self {
        self.0.extend(value);
        self
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Returns the message with its length in front, as the network carries it.
    pub(crate) fn framed(self) -> Vec<u8> {
        let mut frame = Self::default();
        frame.bytes(&self.0);
        frame.0
    }
}

/// Reads values from a message. Each length is checked against what is there.
#[derive(Debug)]
pub(crate) struct Decoder<'a>(&'a [u8]);

/// A message that is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reply does not have the form of its request")
    }
}

impl std::error::Error for Malformed {}

impl<'a> Decoder<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    pub(crate) fn int(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn long(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    pub(crate) fn bool(&mut self) -> Result<bool, Malformed> {
        Ok(self.array::<1>()? != [0])
    }

    /// Returns bytes after their length. A length of -1 is "nothing", which is the same as no bytes here.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        match self.int()? {
            -1 => Ok(&[]),
            length => self.take(usize::try_from(length).map_err(|_| Malformed)?),
        }
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed)
    }

    /// Returns a list. Its items are read one by one, so a length that lies costs nothing.
    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.int()?.max(0);
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_written() {
        let mut written = Encoder::default();
        written
            .int(-101)
            .long(i64::MIN)
            .bool(true)
            .text("é")
            .bytes(b"\0x");
        let frame = written.framed();
        let mut read = Decoder::new(&frame);
        let body = read.bytes().unwrap();
        assert!(read.rest().is_empty());
        let mut read = Decoder::new(body);
        assert_eq!((read.int(), read.long()), (Ok(-101), Ok(i64::MIN)));
        assert_eq!((read.bool(), read.text()), (Ok(true), Ok("é")));
        assert_eq!(read.bytes(), Ok(&b"\0x"[..]));
        assert_eq!(read.int(), Err(Malformed));
    }

    #[test]
    fn lengths_are_bounded_by_the_message() {
        for length in [5, i32::MAX, -2] {
            let mut message = Encoder::default();
            message.int(length).int(0);
            let read = Decoder::new(&message.0).bytes();
            assert_eq!(read, Err(Malformed), "{length}");
            if length > 0 {
                let list = Decoder::new(&message.0).list(Decoder::long);
                assert_eq!(list, Err(Malformed), "{length}");
            }
        }
        let mut none = Encoder::default();
        none.int(-1);
        assert_eq!(Decoder::new(&none.0).bytes(), Ok(&[][..]));
    }
}
