use std::fmt;

use sha1_smol::Sha1;

/// One command for the server, as it goes over the wire.
pub(crate) struct Command {
    words: usize,
    /// Each with its length in front.
    bytes: Vec<u8>,
}

/// Room for most commands, so that they are written without moving.
const ROOM: usize = 192;

impl Command {
    pub(crate) fn new(name: &str) -> Self {
        let empty = Self {
            words: 0,
            bytes: Vec::with_capacity(ROOM),
        };
        empty.arg(name)
    }

    pub(crate) fn arg(mut self, value: impl AsRef<[u8]>) -> Self {
        write_word(&mut self.bytes, value.as_ref());
        self.words += 1;
        self
    }

    /// An argument that consists of `parts`.
    pub(crate) fn joined(mut self, parts: &[&str]) -> Self {
        write_joined(&mut self.bytes, parts);
        self.words += 1;
        self
    }

    pub(crate) fn number(mut self, value: u64) -> Self {
        write_number(&mut self.bytes, value);
        self.words += 1;
        self
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        write_head(bytes, self.words);
        bytes.extend_from_slice(&self.bytes);
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments may be anything the caller named a lock, and are of no use in a log.
        f.write_str("Command")
    }
}

/// The beginning of a command that has so many words.
pub(super) fn write_head(bytes: &mut Vec<u8>, words: usize) {
    write_length(bytes, b'*', words);
}

#[inline]
pub(super) fn write_word(bytes: &mut Vec<u8>, word: &[u8]) {
    write_length(bytes, b'$', word.len());
    bytes.extend_from_slice(word);
    bytes.extend_from_slice(b"\r\n");
}

/// One word that consists of `parts`.
pub(super) fn write_joined(bytes: &mut Vec<u8>, parts: &[&str]) {
    let length = parts.iter().map(|part| part.len()).sum();
    write_length(bytes, b'$', length);
    for part in parts {
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
}

pub(super) fn write_number(bytes: &mut Vec<u8>, value: u64) {
    let mut digits = [0; DIGITS_MAX];
    let start = write_digits(&mut digits, value);
    write_word(bytes, &digits[start..]);
}

/// As many as the greatest number has.
const DIGITS_MAX: usize = 20;

/// Writes `value` to the end of `digits`, and says where it begins.
fn write_digits(digits: &mut [u8; DIGITS_MAX], mut value: u64) -> usize {
    let mut start = DIGITS_MAX;
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return start;
        }
    }
}

#[inline]
fn write_length(bytes: &mut Vec<u8>, kind: u8, length: usize) {
    // Nearly every length is so short; what is put together in one piece is copied in one step.
    let digit = |value: usize| b'0' + (value % 10) as u8;
    if length < 10 {
        return bytes.extend_from_slice(&[kind, digit(length), b'\r', b'\n']);
    }
    if length < 100 {
        let digits = [digit(length / 10), digit(length)];
        return bytes.extend_from_slice(&[kind, digits[0], digits[1], b'\r', b'\n']);
    }
    let mut digits = [0; DIGITS_MAX];
    let start = write_digits(&mut digits, length as u64);
    bytes.push(kind);
    bytes.extend_from_slice(&digits[start..]);
    bytes.extend_from_slice(b"\r\n");
}

/// A Lua script, which a server keeps under the SHA-1 of its text until it is told to forget.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
    sha1: String,
}

impl Script {
    pub(crate) fn new(text: &'static str) -> Self {
        Self {
            sha1: Sha1::from(text).digest().to_string(),
            text,
        }
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> &'static str {
        self.text
    }

    pub(super) fn load(&self) -> Command {
        Command::new("SCRIPT").arg("LOAD").arg(self.text)
    }

    pub(super) fn sha1(&self) -> &str {
        &self.sha1
    }

    /// Has it run by a server that knows it: see [`Link::run`](super::Link::run).
    pub(crate) fn call(&self, keys: &[impl AsRef<str>], arguments: &[impl AsRef<[u8]>]) -> Command {
        let call = Command::new("EVALSHA").arg(&self.sha1);
        let mut call = call.number(keys.len() as u64);
        for key in keys {
            call = call.arg(key.as_ref());
        }
        for argument in arguments {
            call = call.arg(argument);
        }
        call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_its_words_with_their_lengths() {
        let mut bytes = b"before".to_vec();
        let command = Command::new("PEXPIRE").joined(&["doc", "", "\r\n"]);
        let command = command.number(u64::MAX);
        command.arg("").number(0).write(&mut bytes);
        let written = "before*5\r\n$7\r\nPEXPIRE\r\n$5\r\ndoc\r\n\r\n\
            $20\r\n18446744073709551615\r\n$0\r\n\r\n$1\r\n0\r\n";
        assert_eq!(std::str::from_utf8(&bytes), Ok(written));
    }

    #[test]
    fn lengths_of_any_number_of_digits_are_written_in_full() {
        for length in [0, 9, 10, 99, 100, 101, 12_345] {
            let mut bytes = Vec::new();
            write_length(&mut bytes, b'$', length);
            assert_eq!(bytes, format!("${length}\r\n").into_bytes());
        }
    }

    #[test]
    fn a_script_is_called_by_the_sha_1_of_its_text() {
        let mut bytes = Vec::new();
        let script = Script::new("return 1");
        script.call(&["k"], &["a"]).write(&mut bytes);
        let written = "*5\r\n$7\r\nEVALSHA\r\n\
            $40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n";
        assert_eq!(std::str::from_utf8(&bytes), Ok(written));
    }
}
