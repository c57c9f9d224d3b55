use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use leasehold_testkit::servers::until;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::{Winsize, openpty};

use crate::processes;
use crate::screen::Screen;
use crate::stand_ins::StandIns;

/// An interactive shell on a terminal of its own, whose prompt is green and whose input is bold.
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
        let window = Winsize {
            ws_col: size.0,
            ws_row: size.1,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(Some(&window), None).unwrap();
        let side = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        let child = bash
            .env("TERM", "xterm")
            .env("PS1", PROMPT)
            .env("PS0", "\x1b[0m")
            .stdin(side(&pty.slave))
            .stdout(side(&pty.slave))
            .stderr(side(&pty.slave))
            .spawn()
            .unwrap();
        fcntl(&pty.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let mut shell = Self {
            child,
            terminal: pty.master.into(),
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

    /// Waits until what is written after the last command is as `condition` wants it.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, condition: impl Fn(&str) -> bool) {
        until(&format!("{what:?} on a terminal"), || {
            self.read();
            condition(&String::from_utf8_lossy(&self.written[self.typed_at..]))
        });
    }

    /// What the terminal shows, without the prompt that waits for a command.
    pub(crate) fn screen(&mut self, stand_ins: &mut StandIns) -> Screen {
        self.read();
        let written = String::from_utf8_lossy(&self.written);
        Screen::after(&stand_ins.put_into(&written), self.size).without_last("$")
    }

    fn read(&mut self) {
        let mut chunk = [0; 4096];
        loop {
            match self.terminal.read(&mut chunk) {
                Ok(0) => return,
                Ok(length) => self.written.extend(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Nothing new; or nobody has the terminal open any more.
                Err(_) => return,
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        processes::kill_session(self.child.id().cast_signed());
        let _ = self.child.wait();
    }
}

const PROMPT: &str = "\x1b[32m$\x1b[0;1m ";
