use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command};

use leasehold_testkit::servers::until;
use leasehold_testkit::{start_on_terminal, written_on};

use crate::processes;
use crate::redactions::Redactions;
use crate::screen::Screen;

/// An interactive shell on its own terminal, with a green prompt and bold input.
#[derive(Debug)]
pub(crate) struct Shell {
    child: Child,
    terminal: File,
    size: (u16, u16),
    written: Vec<u8>,
    /// How much was written when the last command was typed.
    typed_at: usize,
}

impl Shell {
    /// Starts `bash`, which leads a session, on a terminal of `size`, columns and rows.
    pub(crate) fn open(bash: &mut Command, size: (u16, u16)) -> Self {
        bash.env("TERM", "xterm")
            .env("PS1", PROMPT)
            .env("PS0", "\x1b[0m");
        let (child, terminal) = start_on_terminal(bash, Some(size)).unwrap();
        let mut shell = Self {
            child,
            terminal,
            size,
            written: Vec::new(),
            typed_at: 0,
        };
        shell.prompts();
        shell
    }

    /// Types `command`, once the shell waits for one.
    #[track_caller]
    pub(crate) fn types(&mut self, command: &str) {
        self.prompts();
        self.typed_at = self.written.len();
        self.terminal
            .write_all(format!("{command}\n").as_bytes())
            .unwrap();
    }

    /// Waits until `text` is written after the last command.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) {
        self.until(text, |written| written.contains(text));
    }

    /// Waits until the last command has ended.
    #[track_caller]
    pub(crate) fn prompts(&mut self) {
        self.until("a prompt", |written| written.ends_with(PROMPT));
    }

    /// Waits until the output after the last command satisfies `condition`.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, condition: impl Fn(&str) -> bool) {
        until(&format!("{what:?} on a terminal"), || {
            self.read();
            condition(&String::from_utf8_lossy(&self.written[self.typed_at..]))
        });
    }

    /// What the terminal shows, without the prompt that waits for a command.
    pub(crate) fn screen(&mut self, redactions: &mut Redactions) -> Screen {
        self.read();
        let written = String::from_utf8_lossy(&self.written);
        Screen::after(&redactions.apply(&written), self.size).without_last("$")
    }

    fn read(&mut self) {
        self.written.extend(written_on(&mut self.terminal));
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        processes::kill_session(self.child.id().cast_signed());
        let _ = self.child.wait();
    }
}

const PROMPT: &str = "\x1b[32m$\x1b[0;1m ";
