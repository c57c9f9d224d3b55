use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command};

use leasehold_testkit::servers::until;
use leasehold_testkit::{start_on_terminal, written_on};
use nix::unistd::tcgetpgrp;

use crate::support::harness::{PROGRAM, Sandbox};
use crate::support::processes;
use crate::support::program::{Arguments, shell_code};

/// A program on a terminal of its own, which is its controlling terminal.
pub(crate) struct OnTerminal {
    child: Child,
    terminal: File,
    screen: String,
}

impl OnTerminal {
    /// Starts `arguments` as the leader of a new session.
    pub(crate) fn start<A: Arguments + ?Sized>(sandbox: &Sandbox, arguments: &A) -> Self {
        let mut command = Command::new("setsid");
        sandbox.furnish(&mut command);
        command
            .args(["--ctty", "--wait"])
            .args(arguments.list())
            .env("LEASEHOLD_STORE", sandbox.store())
            .env("TERM", "xterm")
            .env("PS1", "$ ");
        let (child, terminal) = start_on_terminal(&mut command, None).unwrap();
        Self {
            child,
            terminal,
            screen: String::new(),
        }
    }

    /// Starts `leasehold` with `args` as the leader of a new session.
    pub(crate) fn leasehold<A: Arguments + ?Sized>(sandbox: &Sandbox, args: &A) -> Self {
        let program = vec![PROGRAM.to_owned()];
        Self::start(sandbox, &[program, args.list()].concat())
    }

    /// Starts an interactive shell with job control.
    pub(crate) fn shell(sandbox: &Sandbox) -> Self {
        let shell = "bash --norc --noprofile --noediting -i";
        let mut terminal = Self::start(sandbox, shell);
        // What jobs print differs from what the test types, so that it can distinguish the two.
        terminal.types("stty -echo; echo shell-$((1+1))\n");
        terminal.shows("shell-2");
        terminal
    }

    fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
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

    /// The text that is shown and that no wait has consumed yet.
    pub(crate) fn screen(&mut self) -> &str {
        self.look();
        &self.screen
    }

    /// The group that has the terminal.
    pub(crate) fn foreground(&self) -> i32 {
        tcgetpgrp(&self.terminal).unwrap().as_raw()
    }

    #[track_caller]
    pub(crate) fn until_foreground(&self, group: i32) {
        until("the command has the terminal", || {
            self.foreground() == group
        });
    }

    /// Waits until the shell runs a command that prints twice this `number`.
    #[track_caller]
    pub(crate) fn answers(&mut self, number: u32) {
        self.types(&format!("echo shell-$(({number}+{number}))\n"));
        self.shows(&format!("shell-{}", 2 * number));
    }

    #[track_caller]
    pub(crate) fn exit_code(self) -> i32 {
        self.ends().0
    }

    /// Waits for the end, and returns the exit code and the text that no wait has consumed.
    #[track_caller]
    pub(crate) fn ends(mut self) -> (i32, String) {
        let mut status = None;
        until("the end of the program on the terminal", || {
            self.look();
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        self.look();
        (shell_code(status.unwrap()), self.screen.clone())
    }

    fn look(&mut self) {
        let written = written_on(&mut self.terminal);
        self.screen.push_str(&String::from_utf8_lossy(&written));
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        processes::kill_session(self.pid());
        let _ = self.child.wait();
    }
}
