use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use leasehold::Mode;
use leasehold::clock::{BootInstant, Clock as _, SystemClock, WallTime, within};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::guardian::protocol::{ControlMessage, Report};
use crate::guardian::release_order::ReleaseOrder;
use crate::locks::held_locks::HeldLocks;
use crate::locks::last_run::{LastRun, RunEnd};
use crate::locks::lost_lock::LostLock;
use crate::locks::min_hold::MinHold;
use crate::locks::release::{Releasing, UNANSWERED};
use crate::options::command_spec::CommandSpec;
use crate::options::lock_options::LockOptions;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::process::tree::ProcessTree;
use crate::runtime::signals::{Arrived, Signals};
use crate::supervise::end::End;
use crate::supervise::guardian_process::{GuardianProcess, Pipes, SupervisorConfig};
use crate::supervise::job_control::JobControl;
use crate::system::reap_orphans;

/// The command to run under the lock, and how.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) lock_options: &'a LockOptions,
    pub(crate) command: &'a CommandSpec,
    /// Until when the locks are kept, even if the command ends earlier.
    pub(crate) keep_until: Option<BootInstant>,
    /// Whether the locks can outlast this process.
    pub(crate) has_leases: bool,
    /// The ids of the servers, for the command.
    pub(crate) members: String,
    /// The descriptors that hold the locks, for lock files.
    pub(crate) descriptors: Vec<OwnedFd>,
    /// How the guardian releases the locks if this process is killed.
    pub(crate) release_order: Option<ReleaseOrder>,
    /// The locks that are held around the command, including those of this run.
    pub(crate) outer_lock: String,
    /// The guardian of the process group, if the run is nested.
    pub(crate) outer: Option<Pid>,
    /// The pipes for the output of the command; `None` for the streams of this process.
    pub(crate) output: Option<Pipes>,
}

/// The process that holds the locks while the command runs. It passes on deadlines, signals and the
/// terminal, and releases the locks at the end.
pub(crate) struct Wrapper<'a> {
    hold: HeldLocks,
    guardian: GuardianProcess,
    signals: &'a Signals,
    output: &'a Output,
    lock_options: &'a LockOptions,
    command: &'a CommandSpec,
    keep_until: Option<BootInstant>,
    has_leases: bool,
    /// A signal that asks for the end was passed on.
    skip_wait: bool,
    process_tree: ProcessTree,
    job_control: JobControl,
    outer: Option<Pid>,
    pid: Option<Pid>,
    began: WallTime,
    /// The last deadline that was sent to the guardian.
    deadline: Option<BootInstant>,
    lost: bool,
    /// A signal asked the program to end. SIGHUP does not count, because daemons reload their settings
    /// on it.
    end_requested: bool,
    /// The lock that was lost because an operator broke it.
    broken: Option<String>,
}

/// How the guardian ended.
enum CommandOutcome {
    Ended(ExitStatus),
    NotStarted(Errno),
    GuardianGone,
}

impl CommandOutcome {
    fn into_end(
        self,
        command: &CommandSpec,
        had_terminal: bool,
        end_requested: bool,
        is_released: bool,
    ) -> Result<End, Failure> {
        match self {
            Self::Ended(status) if had_terminal && is_interrupt(status) => Ok(End::Interrupted),
            Self::Ended(status) => Ok(End::Ended {
                status,
                end_requested,
                is_released,
            }),
            Self::NotStarted(errno) => Err(not_started(&command.command, errno)),
            Self::GuardianGone => Err(Failure::new(
                ExitCode::FAILURE,
                "the guardian process was killed, so the command was killed too",
            )),
        }
    }
}

fn not_started(command: &[OsString], errno: Errno) -> Failure {
    let program = command.first().cloned().unwrap_or_default();
    let mut text = format!("cannot run {program:?}: {}", errno.desc());
    let has_blank = program.as_encoded_bytes().contains(&b' ');
    if errno == Errno::ENOENT && has_blank && command.len() == 1 {
        text += &format!(
            "; a command is given as separate words, or a line for the shell with -c, as in: run NAME -c {program:?}"
        );
    }
    Failure::new(ExitCode::of_start(errno), text)
}

fn is_interrupt(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::SIGINT as i32)
}

impl<'a> Wrapper<'a> {
    /// Starts the guardian, which starts the command. Releases the locks on failure.
    pub(crate) fn start(
        hold: HeldLocks,
        job: Job<'a>,
        signals: &'a Signals,
        output: &'a Output,
    ) -> io::Result<Self> {
        let process_tree = ProcessTree::below_this_process()?;
        let job_control = JobControl::new(job.outer.is_some());
        let deadline = hold.deadline();
        let command = job
            .command
            .within(deadline.map(|deadline| deadline.since(SystemClock.now())));
        let fences = hold.fences();
        let fence = fences.get(&job.lock_options.name).map(ToString::to_string);
        let guardian = GuardianProcess::start(SupervisorConfig {
            command: &job.command.command,
            environment: vec![
                ("LEASEHOLD_NAME", job.lock_options.name.clone()),
                ("LEASEHOLD_FENCE", fence.unwrap_or_default()),
                (
                    "LEASEHOLD_FENCES",
                    serde_json::Value::Object(fences).to_string(),
                ),
                ("LEASEHOLD_MEMBERS", job.members),
            ],
            gets_password: command.gets_password,
            deadline,
            grace: command.grace,
            margin: command.margin,
            locks: job.descriptors,
            release_order: job.release_order,
            nested_in: job.outer,
            outer_lock: job.outer_lock,
            output: job.output,
            foreground: job_control.begins_in_the_foreground(),
        })?;
        Ok(Self {
            hold,
            guardian,
            signals,
            output,
            lock_options: job.lock_options,
            command: job.command,
            keep_until: job.keep_until,
            has_leases: job.has_leases,
            skip_wait: false,
            process_tree,
            job_control,
            outer: job.outer,
            pid: None,
            began: SystemClock.wall(),
            deadline,
            lost: false,
            end_requested: false,
            broken: None,
        })
    }

    /// Waits until the command has ended, and releases the locks.
    pub(crate) async fn supervise(mut self) -> Result<End, Failure> {
        let outcome = self.watch().await?;
        let had_terminal = self
            .pid
            .is_some_and(|group| self.job_control.take_back_from(group));
        let is_guardian_gone = matches!(outcome, Some(CommandOutcome::GuardianGone));
        if is_guardian_gone {
            self.end_the_orphans().await?;
        }
        let is_unclean = self.lost || is_guardian_gone;
        let stays_closed = is_unclean && self.lock_options.lock_delay.is_some();
        if stays_closed {
            // Even if renewals have recovered meanwhile, late writes of the command may still arrive.
            self.hold.give_up();
        }
        self.record_end(outcome.as_ref()).await;
        let min_hold = self.min_hold(outcome.as_ref(), had_terminal);
        let releasing = Releasing {
            lock_options: self.lock_options,
            output: self.output,
        };
        let released = match min_hold {
            Some(min_hold) => min_hold.end(self.hold, &releasing).await,
            None => self.hold.end(&releasing).await,
        };
        if let Some(loss) = released.lost
            && !self.lost
            && !stays_closed
        {
            print_loss(self.output, &loss);
            self.broken = loss.broken.then_some(loss.lock);
            self.lost = true;
        }
        match outcome {
            Some(outcome) if !self.lost => outcome.into_end(
                self.command,
                had_terminal,
                self.end_requested,
                released.is_complete,
            ),
            _ => Ok(End::Lost {
                end_requested: self.end_requested,
                broken: self.broken,
            }),
        }
    }

    /// Records how the command ended, if its lock is held alone. The lock is released only afterwards, but soon.
    async fn record_end(&self, outcome: Option<&CommandOutcome>) {
        let lock = &self.lock_options.name;
        let is_alone = self.command.records_end && self.lock_options.mode() == Mode::Exclusive;
        let HeldLocks::Own(guards) = &self.hold else {
            return;
        };
        let Some(guard) = guards.guard(lock).filter(|_| is_alone) else {
            return;
        };
        let end = match outcome {
            Some(CommandOutcome::Ended(status)) if !self.lost => {
                RunEnd::Ended(ExitCode::of_command(*status))
            }
            Some(CommandOutcome::NotStarted(errno)) => {
                RunEnd::NotStarted(ExitCode::of_start(*errno))
            }
            _ => RunEnd::Lost,
        };
        let run = LastRun::now(self.lock_options, guard.fence(), self.began, end);
        let limit = SystemClock.now() + RECORD_MAX;
        let why = match within(&SystemClock, limit, run.write(guard)).await {
            Some(Ok(())) => return,
            Some(Err(error)) => error.to_string(),
            None => UNANSWERED.to_owned(),
        };
        let text = format!("the end of the command under lock {lock:?} is not recorded: {why}");
        self.output.print_message(&Message::Warning(&text));
    }

    /// How the locks outlast the command with --min-hold, if it ran and they were not lost.
    fn min_hold(
        &self,
        outcome: Option<&CommandOutcome>,
        had_terminal: bool,
    ) -> Option<MinHold<'a>> {
        let Some(CommandOutcome::Ended(status)) = outcome else {
            return None;
        };
        let until = self.keep_until.filter(|_| !self.lost)?;
        Some(MinHold {
            until,
            skip_wait: self.skip_wait || had_terminal && is_interrupt(*status),
            has_leases: self.has_leases,
            signals: self.signals,
        })
    }

    /// `None` if the deadline was too near to start the command.
    async fn watch(&mut self) -> Result<Option<CommandOutcome>, Failure> {
        loop {
            tokio::select! {
                biased;
                report = self.guardian.next() => match report {
                    Some(Report::Started(pid)) => self.started(Pid::from_raw(pid)),
                    Some(Report::NotStarted(errno)) => {
                        return Ok(Some(CommandOutcome::NotStarted(Errno::from_raw(errno))));
                    }
                    Some(Report::TooLate) => {
                        self.note_loss(&self.loss_that_is_near());
                        return Ok(None);
                    }
                    Some(Report::Stopped(signal)) => self.stop(signal)?,
                    Some(Report::Ending) => self.note_loss(&self.loss_that_is_near()),
                    Some(Report::Ended(status)) => return Ok(Some(CommandOutcome::Ended(status))),
                    None => return Ok(Some(CommandOutcome::GuardianGone)),
                },
                signal = self.signals.next() => self.pass_on(signal?),
                deadline = self.hold.deadline_moved(self.deadline) => {
                    self.deadline = deadline;
                    let deadline = deadline.map(SystemClock::as_other_processes_read);
                    self.guardian.send(ControlMessage::Deadline(deadline));
                }
                loss = self.hold.lost(), if !self.lost => {
                    self.guardian.send(ControlMessage::Lost);
                    self.note_loss(&loss);
                }
            }
        }
    }

    fn started(&mut self, pid: Pid) {
        self.pid = Some(pid);
        if self.outer.is_none() {
            self.process_tree.set_group(pid);
        }
    }

    /// Passes a signal on to the guardian, which drops it if the command received it as well.
    fn pass_on(&mut self, signal: Arrived) {
        self.end_requested |= signal.ends() && signal.number() != Signal::SIGHUP as i32;
        self.skip_wait |= signal.ends();
        self.guardian.send(ControlMessage::Signal(signal.number()));
    }

    /// Stops after the command was stopped, and continues with it unless the lock was lost meanwhile.
    fn stop(&mut self, signal: i32) -> Result<(), Failure> {
        let Some(group) = self.pid else {
            return Ok(());
        };
        self.job_control
            .stop_with(group, signal)
            .map_err(|error| Failure::of("cannot stop", &error))?;
        if self.hold.seems_valid() {
            self.job_control.continue_with(group);
            self.guardian.send(ControlMessage::Continue);
        }
        // Otherwise the loss, which is reported next, ends the command.
        Ok(())
    }

    /// Why the guardian began to end the command although the wrapper reported no loss.
    fn loss_that_is_near(&self) -> LostLock {
        let reason = if self.lock_options.max_hold.is_some() && !self.hold.is_in_doubt() {
            HELD_TOO_LONG
        } else {
            NO_RENEWAL
        };
        LostLock {
            lock: self.hold.first_to_end(),
            reason: reason.to_owned(),
            broken: false,
        }
    }

    fn note_loss(&mut self, loss: &LostLock) {
        if !self.lost {
            print_loss(self.output, loss);
            self.broken = loss.broken.then(|| loss.lock.clone());
        }
        self.lost = true;
    }

    /// Kills the processes that a killed guardian left behind.
    async fn end_the_orphans(&self) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::of("cannot end the command", &error);
        loop {
            self.process_tree.signal(Signal::SIGKILL).map_err(failed)?;
            reap_orphans(None).map_err(failed)?;
            if self.process_tree.survivors().map_err(failed)?.is_empty() {
                return Ok(());
            }
            SystemClock
                .sleep_until(SystemClock.now() + KILL_AGAIN)
                .await;
        }
    }
}

fn print_loss(output: &Output, loss: &LostLock) {
    output.print_message(&Message::Lost {
        lock: &loss.lock,
        reason: &loss.reason,
    });
}

const NO_RENEWAL: &str = "could not renew it in time; ending the command";
const HELD_TOO_LONG: &str = "--max-hold reached; ending the command";
/// How long recording the end may delay the release.
const RECORD_MAX: Duration = Duration::from_secs(2);
const KILL_AGAIN: Duration = Duration::from_millis(20);
