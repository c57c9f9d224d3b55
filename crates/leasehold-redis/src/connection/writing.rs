use super::command::{Command, Script, write_head, write_joined, write_number, write_word};

/// Requests, written where they will be read from: behind all else that goes out on a connection.
///
/// Unless they are [kept](Self::keep) they are taken back.
pub(crate) struct Writing<'a> {
    bytes: &'a mut Vec<u8>,
    start: usize,
    commands: usize,
    /// Where the last command begins.
    head: usize,
    /// How many words it has by now.
    words: usize,
}

impl<'a> Writing<'a> {
    pub(super) fn behind(bytes: &'a mut Vec<u8>) -> Self {
        let start = bytes.len();
        Self {
            bytes,
            start,
            commands: 0,
            head: start,
            words: 0,
        }
    }

    /// Begins a command; its arguments follow.
    #[inline]
    pub(crate) fn command(&mut self, name: &str) -> &mut Self {
        self.end_command();
        self.head = self.bytes.len();
        // How many words it has is known when it ends: mostly one digit.
        self.bytes.extend_from_slice(b"*0\r\n");
        self.commands += 1;
        self.arg(name)
    }

    /// Begins the call of a script by a server that knows it; so many keys and all arguments follow. See
    /// [`Link::run`](super::Link::run).
    pub(crate) fn call(&mut self, script: &Script, keys: usize) -> &mut Self {
        let call = self.command("EVALSHA").arg(script.sha1());
        call.number(keys as u64)
    }

    // In line, so that of a word that is known nothing is left to compute.
    #[inline]
    pub(crate) fn arg(&mut self, value: impl AsRef<[u8]>) -> &mut Self {
        write_word(self.bytes, value.as_ref());
        self.words += 1;
        self
    }

    /// An argument that consists of `parts`.
    pub(crate) fn joined(&mut self, parts: &[&str]) -> &mut Self {
        write_joined(self.bytes, parts);
        self.words += 1;
        self
    }

    pub(crate) fn number(&mut self, value: u64) -> &mut Self {
        write_number(self.bytes, value);
        self.words += 1;
        self
    }

    /// A word as it was written elsewhere.
    pub(super) fn written(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.words += 1;
    }

    /// The last word of the command is left out.
    pub(super) fn lacks_a_word(&mut self) {
        self.words += 1;
    }

    /// A command that was put together elsewhere.
    pub(crate) fn add(&mut self, command: &Command) {
        self.end_command();
        command.write(self.bytes);
        self.commands += 1;
    }

    pub(crate) fn add_all<'c>(&mut self, commands: impl IntoIterator<Item = &'c Command>) {
        commands.into_iter().for_each(|command| self.add(command));
    }

    /// How many commands there are by now.
    pub(super) fn commands(&self) -> usize {
        self.commands
    }

    /// Has them go out. Says how many bytes they are.
    pub(super) fn keep(mut self) -> usize {
        self.end_command();
        let length = self.bytes.len() - self.start;
        self.start = self.bytes.len();
        length
    }

    fn end_command(&mut self) {
        match std::mem::take(&mut self.words) {
            // None, or one that came as a whole.
            0 => {}
            words @ 1..10 => self.bytes[self.head + 1] = b'0' + words as u8,
            words => {
                let mut head = Vec::new();
                write_head(&mut head, words);
                let placeholder = self.head..self.head + b"*0\r\n".len();
                drop(self.bytes.splice(placeholder, head));
            }
        }
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.bytes.truncate(self.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_written_as_they_are_elsewhere() {
        for words in [1, 2, 9, 10, 11, 123] {
            let long = (1..words).fold(Command::new("LONG"), Command::number);
            let commands = [Command::new("TIME"), long, Command::new("GET").arg("k")];
            let mut expected = b"before".to_vec();
            for command in &commands {
                command.write(&mut expected);
            }
            let mut bytes = b"before".to_vec();
            let mut writing = Writing::behind(&mut bytes);
            writing.add(&commands[0]);
            writing.command("LONG");
            for at in 1..words {
                writing.number(at);
            }
            writing.command("GET").joined(&["", "k"]);
            assert_eq!(writing.commands(), 3);
            assert_eq!(writing.keep(), expected.len() - b"before".len());
            assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn a_script_is_called_as_it_is_elsewhere() {
        let script = Script::new("return 1");
        let (mut expected, mut bytes) = (Vec::new(), Vec::new());
        script.call(&["k"], &["a"]).write(&mut expected);
        let mut writing = Writing::behind(&mut bytes);
        writing.call(&script, 1).arg("k").arg("a");
        writing.keep();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn what_is_not_kept_leaves_nothing_behind() {
        let mut bytes = b"before".to_vec();
        Writing::behind(&mut bytes).command("GET").arg("k");
        assert_eq!(bytes, b"before");
    }
}
