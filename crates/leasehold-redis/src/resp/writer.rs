/// Appends commands to a buffer, as arrays of bulk strings.
///
/// The number of words of a command is written when the command ends, so the caller need not count them.
#[derive(Debug)]
pub struct CommandWriter<'a> {
    out: &'a mut Vec<u8>,
    commands: usize,
    /// The place at which the last command begins, unless its number of words is known.
    head: Option<usize>,
    /// How many words the last command has.
    words: usize,
}

/// Takes the place of the number of words until it is known.
const PLACEHOLDER: &[u8] = b"*0\r\n";

impl<'a> CommandWriter<'a> {
    /// Returns a writer that appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            commands: 0,
            head: None,
            words: 0,
        }
    }

    /// Begins a command. Its arguments follow.
    #[inline]
    pub fn command(&mut self, name: &str) -> &mut Self {
        self.end_command();
        self.head = Some(self.out.len());
        self.out.extend_from_slice(PLACEHOLDER);
        self.commands += 1;
        self.arg(name)
    }

    /// Begins a command with its number of words and the first of them, in the form of the protocol.
    #[inline]
    pub fn fixed(&mut self, head: &'static str) -> &mut Self {
        self.end_command();
        self.commands += 1;
        self.words(head)
    }

    /// Adds words in the form of the protocol to a command that began with [`fixed`](Self::fixed).
    #[inline]
    pub fn words(&mut self, words: &'static str) -> &mut Self {
        self.out.extend_from_slice(words.as_bytes());
        self
    }

    /// Adds an argument.
    #[inline(always)]
    pub fn arg(&mut self, value: impl AsRef<[u8]>) -> &mut Self {
        let value = value.as_ref();
        self.length(b'$', value.len());
        self.out.extend_from_slice(value);
        self.end_word()
    }

    /// Adds one argument that consists of several parts.
    #[inline]
    pub fn joined(&mut self, parts: &[&[u8]]) -> &mut Self {
        self.length(b'$', parts.iter().map(|part| part.len()).sum());
        for part in parts {
            self.out.extend_from_slice(part);
        }
        self.end_word()
    }

    /// Adds a number in decimal.
    #[inline]
    pub fn number(&mut self, value: u64) -> &mut Self {
        self.arg(itoa::Buffer::new().format(value))
    }

    /// Ends the last command. Returns how many commands were written.
    pub fn finish(mut self) -> usize {
        self.end_command();
        self.commands
    }

    #[inline(always)]
    fn end_word(&mut self) -> &mut Self {
        self.out.extend_from_slice(b"\r\n");
        self.words += 1;
        self
    }

    #[inline]
    fn end_command(&mut self) {
        let words = std::mem::take(&mut self.words);
        if let Some(head) = self.head.take() {
            self.write_count(head, words);
        }
    }

    fn write_count(&mut self, head: usize, words: usize) {
        match words {
            0..10 => self.out[head + 1] = b'0' + words as u8,
            _ => {
                let mut digits = itoa::Buffer::new();
                let digits = digits.format(words).bytes();
                drop(self.out.splice(head + 1..head + 2, digits));
            }
        }
    }

    // With a length that is known at compile time, only the right branch is left.
    #[inline(always)]
    fn length(&mut self, kind: u8, length: usize) {
        // Nearly all lengths are below 100.
        let digit = |value: usize| b'0' + (value % 10) as u8;
        match length {
            0..10 => self
                .out
                .extend_from_slice(&[kind, digit(length), b'\r', b'\n']),
            10..100 => {
                let head = [kind, digit(length / 10), digit(length), b'\r', b'\n'];
                self.out.extend_from_slice(&head);
            }
            _ => {
                self.out.push(kind);
                let mut digits = itoa::Buffer::new();
                self.out.extend_from_slice(digits.format(length).as_bytes());
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_arrays_of_bulk_strings() {
        let mut out = b"before".to_vec();
        let mut writer = CommandWriter::new(&mut out);
        writer.command("TIME");
        writer.command("GET").joined(&[b"a", b"", b"bc"]);
        writer.command("SET").arg("k").number(u64::MAX).number(0);
        assert_eq!(writer.finish(), 3);
        let expected = "before*1\r\n$4\r\nTIME\r\n*2\r\n$3\r\nGET\r\n$3\r\nabc\r\n\
                        *4\r\n$3\r\nSET\r\n$1\r\nk\r\n$20\r\n18446744073709551615\r\n$1\r\n0\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn long_commands_and_words_have_long_heads() {
        for words in [9, 10, 11, 123, 1000] {
            let mut out = Vec::new();
            let mut writer = CommandWriter::new(&mut out);
            writer.command("LONG");
            for _ in 1..words {
                writer.arg("x");
            }
            writer.command("GET").arg("y".repeat(words));
            assert_eq!(writer.finish(), 2);
            let text = String::from_utf8(out).unwrap();
            assert!(text.starts_with(&format!("*{words}\r\n$4\r\nLONG\r\n$1\r\nx\r\n")));
            let last = format!("*2\r\n$3\r\nGET\r\n${words}\r\n{}\r\n", "y".repeat(words));
            assert!(text.ends_with(&last), "{words}");
        }
    }
}
