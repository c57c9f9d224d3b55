use std::io;

use nix::sys::signal::{Signal, kill, raise};
use nix::unistd::Pid;

use crate::process::terminal::Terminal;
use crate::runtime::signals::die_of;

/// Job control: the program and its command share the terminal, stop, continue and get interrupted as
/// one job, although the command has its own process group.
#[derive(Debug)]
pub(crate) struct JobControl {
    /// `None` without a terminal, and in a nested run, where the outer run handles the terminal.
    terminal: Option<Terminal>,
    /// Whether the command gets the terminal when the program has it.
    wants_terminal: bool,
}

/// The process group of the caller, for kill(2).
const OWN_GROUP: Pid = Pid::from_raw(0);

impl JobControl {
    pub(crate) fn new(is_nested: bool) -> Self {
        let terminal = if is_nested { None } else { Terminal::open() };
        Self {
            wants_terminal: terminal.as_ref().is_some_and(Terminal::is_for_the_command),
            terminal,
        }
    }

    /// Whether the command takes the terminal when it starts.
    pub(crate) fn begins_in_the_foreground(&self) -> bool {
        self.wants_terminal
    }

    /// Stops the program after `signal` has stopped the command, which leads `group`, so that the shell
    /// takes over. Returns when the command should continue, perhaps a day later.
    pub(crate) fn stop_with(&mut self, group: Pid, signal: i32) -> io::Result<()> {
        let is = |other: Signal| other as i32 == signal;
        if is(Signal::SIGTTIN) || is(Signal::SIGTTOU) {
            self.wants_terminal = true;
            if self.hand_over_to(group) {
                return Ok(());
            }
        }
        if self.take_back_from(group) && is(Signal::SIGTSTP) {
            // The key would have stopped the rest of the job too, such as a script or a pipeline.
            let _ = kill(OWN_GROUP, Signal::SIGTSTP);
        }
        Ok(raise(Signal::SIGSTOP)?)
    }

    /// Gives the terminal back to the command, which continues, if it had it.
    pub(crate) fn continue_with(&self, group: Pid) {
        if self.wants_terminal {
            self.hand_over_to(group);
        }
    }

    /// Takes the terminal back, and returns whether the command had it.
    pub(crate) fn take_back_from(&self, group: Pid) -> bool {
        let terminal = self.terminal.as_ref();
        terminal.is_some_and(|terminal| terminal.take_back_from(group))
    }

    /// Whether the command has the terminal now.
    fn hand_over_to(&self, group: Pid) -> bool {
        let terminal = self.terminal.as_ref();
        terminal.is_some_and(|terminal| terminal.give_to(group) || terminal.is_with(group))
    }
}

/// Passes an interrupt, which ended a command with the terminal, on to the rest of the job, and dies of
/// it. A shell that runs a script must see that to end the script. Returns only if the signal is
/// ignored.
pub(crate) fn die_by_interrupt() {
    let _ = kill(OWN_GROUP, Signal::SIGINT);
    die_of(Signal::SIGINT);
}
