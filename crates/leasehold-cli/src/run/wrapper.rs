use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock, within};
use leasehold::{Ended, Guard, LostReason};
use nix::errno::Errno;
use nix::sys::signal::{Signal, raise};
use nix::unistd::Pid;

use crate::args::RunArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::message::Message;
use crate::output::Output;
use crate::run::descendants::Family;
use crate::run::guardian_process::{Duty, GuardianProcess};
use crate::run::protocol::{Order, Report};
use crate::run::signals::{Arrived, Signals};
use crate::run::terminal::Terminal;

/// What is to be run under the lock, and how.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) grace: Duration,
    pub(super) margin: Duration,
    /// The ids of the members, for the command.
    pub(super) members: String,
    /// The descriptor that holds the lock, where the kernel does.
    pub(super) descriptor: Option<OwnedFd>,
    /// The clients that hold locks around the command, this one included.
    pub(super) chain: String,
    /// The guardian of the group this process is in, if the run is nested.
    pub(super) outer: Option<Pid>,
}

/// The process that holds the lock while the guardian's child runs: it passes on deadlines, signals
/// and the terminal, and frees the lock at the end.
pub(super) struct Wrapper<'a> {
    guard: Guard,
    guardian: GuardianProcess,
    signals: &'a Signals,
    output: &'a Output,
    args: &'a RunArgs,
    family: Family,
    /// `None` in a nested run: the terminal is the outer one's business.
    terminal: Option<Terminal>,
    /// Whether the command is to have the terminal when this program has it.
    wants_terminal: bool,
    outer: Option<Pid>,
    command: Option<Pid>,
    /// The last deadline the guardian was told.
    deadline: Option<BootInstant>,
    lost: bool,
}

/// How the guardian's work ended.
enum Outcome {
    Ended(ExitStatus),
    NotStarted(Errno),
    TooLate,
    GuardianGone,
}

impl<'a> Wrapper<'a> {
    /// Starts the guardian and with it the command. On failure the lock is freed.
    pub(super) fn start(
        guard: Guard,
        job: Job<'a>,
        signals: &'a Signals,
        output: &'a Output,
    ) -> io::Result<Self> {
        let family = Family::below(Pid::this())?;
        let terminal = match job.outer {
            Some(_) => None,
            None => Terminal::open(),
        };
        let wants_terminal = terminal.as_ref().is_some_and(Terminal::is_for_the_command);
        let deadline = guard.deadline();
        let guardian = GuardianProcess::start(Duty {
            command: &job.args.command,
            environment: vec![
                ("LEASEHOLD_NAME", job.args.name.clone()),
                ("LEASEHOLD_FENCE", guard.fence().to_string()),
                ("LEASEHOLD_MEMBERS", job.members),
            ],
            deadline,
            grace: job.grace,
            margin: job.margin,
            lock: job.descriptor,
            nested_in: job.outer,
            chain: job.chain,
            foreground: wants_terminal,
        })?;
        Ok(Self {
            guard,
            guardian,
            signals,
            output,
            args: job.args,
            family,
            terminal,
            wants_terminal,
            outer: job.outer,
            command: None,
            deadline,
            lost: false,
        })
    }

    /// Stays until the command has ended, and frees the lock.
    pub(super) async fn supervise(mut self) -> Result<ExitCode, Failure> {
        let outcome = self.watch().await?;
        if let (Some(terminal), Some(group)) = (&self.terminal, self.command) {
            terminal.take_back_from(group);
        }
        if let Outcome::GuardianGone = outcome {
            self.end_the_orphans().await?;
        }
        if !self.guard.is_valid() {
            let reason = self.guard.lost().await;
            self.note_loss(&reason.to_string());
        }
        let ended = free(self.guard, self.output).await;
        if ended == Some(Ended::WasLost) && !self.lost {
            note_loss(self.output, self.args, &LostReason::Gone.to_string());
            self.lost = true;
        }
        if self.lost {
            return Ok(ExitCode::LOST);
        }
        let program = self.args.command.first().map(|c| c.to_string_lossy());
        match outcome {
            Outcome::Ended(status) => Ok(code_of(status)),
            Outcome::NotStarted(errno) => Err(Failure::new(
                code_of_start(errno),
                format!(
                    "cannot run {:?}: {}",
                    program.unwrap_or_default(),
                    errno.desc()
                ),
            )),
            Outcome::TooLate => Ok(ExitCode::LOST),
            Outcome::GuardianGone => Err(Failure::new(
                ExitCode::FAILURE,
                "the guardian was killed: the command was killed too",
            )),
        }
    }

    async fn watch(&mut self) -> Result<Outcome, Failure> {
        loop {
            tokio::select! {
                biased;
                report = self.guardian.next() => match report {
                    Some(Report::Started(pid)) => self.started(Pid::from_raw(pid)),
                    Some(Report::NotStarted(errno)) => {
                        return Ok(Outcome::NotStarted(Errno::from_raw(errno)));
                    }
                    Some(Report::TooLate) => {
                        self.note_loss(self.reason_of_the_ending());
                        return Ok(Outcome::TooLate);
                    }
                    Some(Report::Stopped(signal)) => self.stop(signal)?,
                    Some(Report::Ending) => self.note_loss(self.reason_of_the_ending()),
                    Some(Report::Ended(status)) => return Ok(Outcome::Ended(status)),
                    None => return Ok(Outcome::GuardianGone),
                },
                signal = self.signals.next() => {
                    let signal = signal.map_err(|error| Failure::of("cannot read signals", &error))?;
                    self.pass_on(signal);
                }
                deadline = self.guard.deadline_moved(self.deadline) => {
                    self.deadline = deadline;
                    self.guardian.tell(Order::Deadline(deadline));
                }
                reason = self.guard.lost(), if !self.lost => {
                    self.guardian.tell(Order::Lost);
                    self.note_loss(&reason.to_string());
                }
            }
        }
    }

    fn started(&mut self, command: Pid) {
        self.command = Some(command);
        if self.outer.is_none() {
            self.family.set_group(command);
        }
    }

    /// Passes a signal on to the command. In a nested run the terminal's signals and those of the
    /// outer guardian went to the whole group, the command included: twice would be once too often.
    fn pass_on(&self, signal: Arrived) {
        let reached_all = match (self.outer, signal.sender) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(outer), Some(sender)) => outer.as_raw() == sender,
        };
        if !reached_all {
            self.guardian.tell(Order::Signal(signal.number));
        }
    }

    /// The command was stopped: stop too, so that the shell takes over, and go on with it.
    fn stop(&mut self, signal: i32) -> Result<(), Failure> {
        let wanted_terminal = [Signal::SIGTTIN, Signal::SIGTTOU]
            .iter()
            .any(|wanted| *wanted as i32 == signal);
        self.wants_terminal |= wanted_terminal;
        if !(wanted_terminal && self.hand_over_terminal()) {
            if let (Some(terminal), Some(group)) = (&self.terminal, self.command) {
                terminal.take_back_from(group);
            }
            raise(Signal::SIGSTOP).map_err(|errno| Failure::of("cannot stop", &errno))?;
            // Here the program goes on, perhaps a day later.
        }
        if self.guard.is_valid() {
            if self.wants_terminal {
                self.hand_over_terminal();
            }
            self.guardian.tell(Order::Signal(Signal::SIGCONT as i32));
        }
        // Else the loss, which is announced next, ends the command.
        Ok(())
    }

    /// Lets the command have the terminal, and says whether it has it.
    fn hand_over_terminal(&self) -> bool {
        match (&self.terminal, self.command) {
            (Some(terminal), Some(group)) => terminal.give_to(group) || terminal.is_with(group),
            _ => false,
        }
    }

    /// Why the guardian began to end the command though nobody told it that the lock was lost.
    fn reason_of_the_ending(&self) -> &'static str {
        if self.args.max_hold.is_some() && !self.guard.is_in_doubt() {
            HELD_TOO_LONG
        } else {
            NO_RENEWAL
        }
    }

    fn note_loss(&mut self, reason: &str) {
        if !self.lost {
            note_loss(self.output, self.args, reason);
        }
        self.lost = true;
    }

    /// Kills what the guardian left behind when it was killed.
    async fn end_the_orphans(&self) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::of("cannot end the command", &error);
        loop {
            self.family.signal(Signal::SIGKILL).map_err(failed)?;
            self.family.reap_orphans(None).map_err(failed)?;
            if self.family.survivors().map_err(failed)?.is_empty() {
                return Ok(());
            }
            SystemClock
                .sleep_until(SystemClock.now() + KILL_AGAIN)
                .await;
        }
    }
}

fn note_loss(output: &Output, args: &RunArgs, reason: &str) {
    output.say(&Message::Lost {
        lock: &args.name,
        reason,
    });
}

/// Frees the lock. A store that does not answer cannot delay the end for long: the release goes on
/// in the background, and at the latest the lease runs out.
async fn free(guard: Guard, output: &Output) -> Option<Ended> {
    let limit = SystemClock.now() + RELEASE_LIMIT;
    match within(&SystemClock, limit, guard.release()).await {
        Some(Ok(ended)) => Some(ended),
        Some(Err(error)) => {
            output.say(&Message::Warning(&format!("cannot free the lock: {error}")));
            None
        }
        None => {
            output.say(&Message::Warning(
                "the store does not answer: the lock stays shut until its lease runs out",
            ));
            None
        }
    }
}

fn code_of(status: ExitStatus) -> ExitCode {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCode::of(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, Some(signal)) => ExitCode::of_signal(signal),
        (None, None) => ExitCode::FAILURE,
    }
}

fn code_of_start(errno: Errno) -> ExitCode {
    match errno {
        Errno::ENOENT => ExitCode::NOT_FOUND,
        // No room for one more process: nothing that is wrong with the command.
        Errno::EAGAIN | Errno::ENOMEM | Errno::EMFILE | Errno::ENFILE => ExitCode::FAILURE,
        _ => ExitCode::NOT_EXECUTABLE,
    }
}

const NO_RENEWAL: &str = "no renewal was confirmed, and its deadline is near";
const HELD_TOO_LONG: &str = "the longest time it may be held is nearly over";
/// How long the end of the program waits for the lock to be freed.
const RELEASE_LIMIT: Duration = Duration::from_secs(3);
const KILL_AGAIN: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_end_becomes_the_programs_own() {
        let code = |raw| code_of(ExitStatus::from_raw(raw)).get();
        assert_eq!(code(0), 0);
        assert_eq!(code(200 << 8), 200);
        assert_eq!(code(15), 143);
        assert_eq!(code(64), 192, "real-time signals too");
        assert_eq!(code(11 | 0x80), 139, "with a core dump too");
    }

    #[test]
    fn a_command_that_cannot_start_is_told_apart_from_a_machine_that_cannot() {
        assert_eq!(code_of_start(Errno::ENOENT), ExitCode::NOT_FOUND);
        assert_eq!(code_of_start(Errno::EACCES), ExitCode::NOT_EXECUTABLE);
        assert_eq!(code_of_start(Errno::ENOTDIR), ExitCode::NOT_EXECUTABLE);
        assert_eq!(code_of_start(Errno::EAGAIN), ExitCode::FAILURE);
    }
}
