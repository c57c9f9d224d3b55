use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use leasehold_testkit::servers::until;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::openpty;
use nix::unistd::tcgetpgrp;

use crate::harness::Sandbox;
use crate::processes;

/// A program on a terminal of its own, which is its controlling terminal.
pub(crate) struct OnTerminal {
    child: Child,
    keyboard: File,
    screen: String,
}

impl OnTerminal {
    /// Starts `arguments` as the leader of a new session.
    pub(crate) fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::start_at(sandbox, &sandbox.store(), arguments)
    }

    /// The same, with another store.
    pub(crate) fn start_at(sandbox: &Sandbox, store: &str, arguments: &[&str]) -> Self {
        let pty = openpty(None, None).unwrap();
        let side = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        let mut command = Command::new("setsid");
        sandbox.furnish(&mut command);
        let child = command
            .args(["--ctty", "--wait"])
            .args(arguments)
            .env("LEASEHOLD_STORE", store)
            .env("TERM", "xterm")
            .env("PS1", "$ ")
            .stdin(side(&pty.slave))
            .stdout(side(&pty.slave))
            .stderr(side(&pty.slave))
            .spawn()
            .unwrap();
        fcntl(&pty.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        Self {
            child,
            keyboard: pty.master.into(),
            screen: String::new(),
        }
    }

    /// Starts an interactive shell with job control.
    pub(crate) fn shell(sandbox: &Sandbox) -> Self {
        let shell = ["bash", "--norc", "--noprofile", "--noediting", "-i"];
        let mut terminal = Self::start(sandbox, &shell);
        // Jobs of the shell are told apart from the test's typing by what they print.
        terminal.types("stty -echo; echo shell-$((1+1))\n");
        terminal.shows("shell-2");
        terminal
    }

    fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until `text` is shown, and forgets everything up to it.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) {
        let mut found = None;
        let mut seen = String::new();
        until(&format!("{text:?} on the terminal"), || {
            self.look();
            found = self.screen.find(text);
            seen.clone_from(&self.screen);
            found.is_some()
        });
        self.screen.drain(..found.unwrap() + text.len());
    }

    /// What is shown and was not yet waited for.
    pub(crate) fn screen(&mut self) -> &str {
        self.look();
        &self.screen
    }

    /// The group that has the terminal.
    pub(crate) fn foreground(&self) -> i32 {
        tcgetpgrp(&self.keyboard).unwrap().as_raw()
    }

    #[track_caller]
    pub(crate) fn exit_code(mut self) -> i32 {
        let mut status = None;
        until("the end of the program on the terminal", || {
            self.look();
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code().unwrap()
    }

    fn look(&mut self) {
        let mut chunk = [0; 4096];
        loop {
            match self.keyboard.read(&mut chunk) {
                Ok(0) => return,
                Ok(length) => {
                    let text = String::from_utf8_lossy(&chunk[..length]);
                    self.screen.push_str(&text);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Nothing new; or nobody has the terminal open any more.
                Err(_) => return,
            }
        }
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        processes::kill_session(self.pid());
        let _ = self.child.wait();
    }
}
