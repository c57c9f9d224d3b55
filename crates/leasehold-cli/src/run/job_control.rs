use std::io;

use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::unistd::Pid;

use crate::run::terminal::Terminal;

/// What a shell expects of a job: that it has the terminal, stops, goes on and is interrupted as
/// one, though the command runs in a group of its own.
#[derive(Debug)]
pub(super) struct JobControl {
    /// `None` without a terminal, and in a nested run, where it is the outer one's business.
    terminal: Option<Terminal>,
    /// Whether the command is to have the terminal when the program has it.
    wants_terminal: bool,
}

/// The process group of the caller, for kill(2).
const OWN_GROUP: Pid = Pid::from_raw(0);

impl JobControl {
    pub(super) fn new(is_nested: bool) -> Self {
        let terminal = if is_nested { None } else { Terminal::open() };
        Self {
            wants_terminal: terminal.as_ref().is_some_and(Terminal::is_for_the_command),
            terminal,
        }
    }

    /// Whether the command takes the terminal when it starts.
    pub(super) fn begins_in_the_foreground(&self) -> bool {
        self.wants_terminal
    }

    /// The command, which leads `group`, was stopped by `signal`: stops the program too, so that
    /// the shell takes over. Returns when the command is to go on, perhaps a day later.
    pub(super) fn stop_with(&mut self, group: Pid, signal: i32) -> io::Result<()> {
        let is = |other: Signal| other as i32 == signal;
        if is(Signal::SIGTTIN) || is(Signal::SIGTTOU) {
            self.wants_terminal = true;
            if self.hand_over_to(group) {
                return Ok(());
            }
        }
        if self.take_back_from(group) && is(Signal::SIGTSTP) {
            // The key would have stopped the rest of the job too: a script around, a pipeline.
            let _ = kill(OWN_GROUP, Signal::SIGTSTP);
        }
        Ok(raise(Signal::SIGSTOP)?)
    }

    /// Lets the command, which goes on, have the terminal if it had it.
    pub(super) fn go_on_with(&self, group: Pid) {
        if self.wants_terminal {
            self.hand_over_to(group);
        }
    }

    /// Takes the terminal back, and says whether the command had it.
    pub(super) fn take_back_from(&self, group: Pid) -> bool {
        let terminal = self.terminal.as_ref();
        terminal.is_some_and(|terminal| terminal.take_back_from(group))
    }

    /// Whether the command has the terminal now.
    fn hand_over_to(&self, group: Pid) -> bool {
        let terminal = self.terminal.as_ref();
        terminal.is_some_and(|terminal| terminal.give_to(group) || terminal.is_with(group))
    }
}

/// The interrupt key ended the command, which had the terminal: lets the rest of the job hear of it
/// too, and dies of it, as a shell that runs a script must see to end the script. Returns only if
/// that is ignored.
pub(super) fn die_of_the_interrupt() {
    let _ = kill(OWN_GROUP, Signal::SIGINT);
    let _ = SigSet::from(Signal::SIGINT).thread_unblock();
}
