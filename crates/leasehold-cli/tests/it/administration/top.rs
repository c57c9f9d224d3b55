//! `top` on a terminal.

use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command};

use leasehold_testkit::servers::until;
use leasehold_testkit::{start_on_terminal, written_on};
use nix::sys::signal::Signal;
use vt100::Parser;

use crate::support::harness::{PROGRAM, Sandbox};
use crate::support::processes;
use crate::support::program::sh;
use crate::support::program::shell_code;

/// `leasehold top` on a terminal of its own, with 100 columns and 24 lines.
struct TopOnTerminal {
    child: Child,
    terminal: File,
    parser: Parser,
}

impl TopOnTerminal {
    fn start(sandbox: &Sandbox, options: &[&str]) -> Self {
        let mut command = Command::new("setsid");
        sandbox.furnish(&mut command);
        command
            .args(["--ctty", "--wait", PROGRAM, "top"])
            .args(options)
            .env("LEASEHOLD_STORE", sandbox.store())
            .env("TERM", "xterm");
        let (child, terminal) = start_on_terminal(&mut command, Some((100, 24))).unwrap();
        let (lines, columns) = (24.try_into().unwrap(), 100.try_into().unwrap());
        Self {
            child,
            terminal,
            parser: Parser::new(lines, columns, 0),
        }
    }

    fn types(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    fn look(&mut self) -> String {
        let written = written_on(&mut self.terminal);
        self.parser.process(&written);
        self.parser.screen().contents()
    }

    /// Waits until the screen has all these texts.
    #[track_caller]
    fn shows(&mut self, texts: &[&str]) {
        let mut screen = String::new();
        let mut shown = || {
            screen = self.look();
            texts.iter().all(|text| screen.contains(text))
        };
        until(&format!("{texts:?} on the screen"), &mut shown);
    }

    /// Waits for the end, and asserts that the terminal is as it was before.
    #[track_caller]
    fn ends(mut self, code: i32) {
        let mut status = None;
        until("the end of top", || {
            self.look();
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        self.look();
        assert_eq!(shell_code(status.unwrap()), code);
        let screen = self.parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        let modes = nix::sys::termios::tcgetattr(&self.terminal).unwrap();
        let echo = nix::sys::termios::LocalFlags::ECHO;
        assert!(modes.local_flags.contains(echo), "{modes:?}");
    }
}

impl Drop for TopOnTerminal {
    fn drop(&mut self) {
        processes::kill_session(self.child.id().cast_signed());
        let _ = self.child.wait();
    }
}

#[test]
fn redis_lock_is_watched_and_broken_in_top() {
    let (sandbox, _server) = Sandbox::on_redis();
    let holder = sandbox.hold("--ttl 3s deploy", "pid");
    let waiter = sandbox.start(&sh("run -v deploy", "echo mine"));
    waiter.says("1st in the queue");
    let mut top = TopOnTerminal::start(&sandbox, &["--interval", "200ms"]);
    let pid = holder.pid().to_string();
    top.shows(&["1 lock ", "deploy", &pid, "deploy: 1 waiter", "PLACE"]);
    top.types("/nothing");
    top.shows(&["no lock is held that matches", "filter: nothing_"]);
    top.types("\x7f\x7f\x7f\x7f\x7f\x7f\x7f\r");
    top.shows(&["1 lock ", "b break"]);
    top.types("bhangs\r");
    top.shows(&["break deploy? y: yes", "held by leasehold"]);
    top.types("y");
    holder.wait().fails(76, &["was broken by", "hangs"]);
    assert_eq!(waiter.wait().succeeds().stdout, "mine\n");
    top.shows(&["0 locks"]);
    top.types("q");
    top.ends(0);
}

#[test]
fn redis_silence_is_shown_and_ends() {
    let (sandbox, server) = Sandbox::on_redis();
    let mut top = TopOnTerminal::start(&sandbox, &["--interval", "200ms"]);
    top.shows(&["0 locks"]);
    server.freeze();
    top.shows(&["the store does not answer"]);
    server.thaw();
    top.shows(&["no lock is held that matches"]);
    until("the store answers again", || {
        !top.look().contains("does not answer")
    });
    top.types("\x03");
    top.ends(128 + Signal::SIGINT as i32);
}

#[test]
fn signal_restores_the_terminal_of_top() {
    let sandbox = Sandbox::new();
    let mut top = TopOnTerminal::start(&sandbox, &[]);
    top.shows(&["0 locks"]);
    processes::signal(top.child.id().cast_signed(), Signal::SIGTERM);
    top.ends(128 + Signal::SIGTERM as i32);
}

#[test]
fn top_without_a_terminal_names_ls() {
    let sandbox = Sandbox::new();
    sandbox
        .run("top")
        .fails(64, &["top needs a terminal", "leasehold ls --json"]);
}
