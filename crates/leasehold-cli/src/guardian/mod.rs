//! The guardian: the process between the wrapper, which holds the lock, and CMD.
//!
//! The wrapper may be killed at any time, and a killed process cannot clean up after itself. So another
//! process watches over it. The guardian has a process group of its own. A SIGKILL to the group of CMD
//! does not kill the guardian, which must wait for the end of that group; nor does `kill -9 %job`,
//! which goes to the group of the wrapper.
//!
//! The wrapper sends it each new deadline. It ends the group of CMD and all other
//! descendants early enough that they are gone at the deadline; at once if the wrapper reports that the
//! lock is lost, or if the pipe closes because the wrapper is gone. For lock files it keeps the
//! descriptors open, so that the kernel releases the locks only after all guarded processes are gone. It releases leases
//! itself if the wrapper was killed and no guarded process is left; otherwise it needs no store.

pub(crate) mod args;
mod command;
mod control_pipe;
mod forwarding;
pub(crate) mod protocol;
pub(crate) mod release_order;
mod termination;

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::unistd::{Pid, getppid};

use crate::guardian::args::GuardianArgs;
use crate::guardian::control_pipe::ControlPipe;
use crate::guardian::forwarding::Forwarding;
use crate::guardian::protocol::{ControlMessage, Report};
use crate::guardian::release_order::ReleaseOrder;
use crate::guardian::termination::{Action, Termination};
use crate::output::exit_code::ExitCode;
use crate::process::tree::ProcessTree;
use crate::runtime::signals::PASSED_ON;
use crate::system::{SignalQueue, adopt_orphans, children, has_children, raw, reap_orphans};

/// Guards one command from its start to its end.
pub(crate) fn guard(args: &GuardianArgs) -> ExitCode {
    match start(args) {
        Ok(Some(mut guardian)) => guardian.watch_to_the_end(),
        Ok(None) => ExitCode::FAILURE,
        // Without its pipes it cannot report why; the wrapper notices that it is gone.
        Err(_) => ExitCode::FAILURE,
    }
}

fn start(args: &GuardianArgs) -> io::Result<Option<Guardian>> {
    let control = ControlPipe::new(File::from(raw::adopt(args.control)?));
    let mut report = File::from(raw::adopt(args.report)?);
    let locks = args.keep.iter().map(|fd| raw::adopt(*fd));
    let locks = locks.collect::<io::Result<_>>()?;
    SigSet::all().thread_block()?;
    let mut read: SigSet = PASSED_ON.into_iter().collect();
    read.add(Signal::SIGCHLD);
    let signals = SignalQueue::of(&read)?;
    adopt_orphans()?;
    let mut termination = Termination::new(
        Duration::from_nanos(args.grace),
        Duration::from_nanos(args.margin),
        args.deadline.map(BootInstant::from_nanos),
    );
    if termination.step(SystemClock.now(), false) == Action::Terminate {
        writeln!(report, "{}", Report::TooLate)?;
        return Ok(None);
    }
    let mut process_tree = ProcessTree::below_this_process()?;
    let child = match command::command(args).spawn() {
        Ok(child) => child,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(Errno::EINVAL as i32);
            writeln!(report, "{}", Report::NotStarted(errno))?;
            return Ok(None);
        }
    };
    let pid = Pid::from_raw(child.id().cast_signed());
    let group = args.nested_in.is_none().then_some(pid);
    if let Some(group) = group {
        process_tree.set_group(group);
    }
    let mut guardian = Guardian {
        control,
        report,
        signals,
        child,
        pid,
        group,
        process_tree,
        termination,
        forwarding: Forwarding::default(),
        lost: false,
        stop: Stop::None,
        release_order: None,
        _locks: locks,
    };
    guardian.report(Report::Started(pid.as_raw()));
    Ok(Some(guardian))
}

struct Guardian {
    control: ControlPipe,
    report: File,
    signals: SignalQueue,
    /// Reaped last, so that neither its id nor its group id is reused while they get signals.
    child: Child,
    pid: Pid,
    group: Option<Pid>,
    process_tree: ProcessTree,
    termination: Termination,
    forwarding: Forwarding,
    /// The lock is lost, or the wrapper is gone.
    lost: bool,
    stop: Stop,
    release_order: Option<ReleaseOrder>,
    _locks: Vec<OwnedFd>,
}

/// How the wrapper reacts to a stop of the command. It stops itself some time after the report, so a
/// wake-up is repeated until the wrapper shows that it continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// No stop was reported since it last continued.
    None,
    /// A stop was reported, and it has not continued yet.
    Told,
    /// A stop was reported, but there is no longer a reason to stay stopped.
    Over,
}

impl Guardian {
    fn watch_to_the_end(&mut self) -> ExitCode {
        match self.watch().and_then(|status| self.say_goodbye(status)) {
            Ok(()) => {
                // The locks stay until their leases end if this fails.
                let _ = self.release_for_the_wrapper();
                ExitCode::SUCCESS
            }
            Err(_) => {
                // It can no longer watch, so no guarded process may be left.
                let _ = self.process_tree.signal(Signal::SIGKILL);
                ExitCode::FAILURE
            }
        }
    }

    fn watch(&mut self) -> io::Result<ExitStatus> {
        let mut killing = false;
        loop {
            let mut wake = match self.termination.step(SystemClock.now(), self.lost) {
                Action::Wait(instant) => instant,
                Action::Terminate => {
                    self.terminate()?;
                    continue;
                }
                Action::Kill => {
                    killing = true;
                    None
                }
            };
            if killing {
                // Repeated, because a process that was just being forked may be missed.
                self.process_tree.signal(Signal::SIGKILL)?;
                wake = Some(SystemClock.now() + KILL_AGAIN);
            }
            if self.stop == Stop::Over {
                self.wake_the_wrapper();
                wake = earlier(wake, Some(SystemClock.now() + WAKE_AGAIN));
            }
            wake = earlier(wake, self.forwarding.next());
            if self.is_over()? {
                return self.child.wait();
            }
            self.sleep_until(wake)?;
            for signal in self.forwarding.take_due(SystemClock.now()) {
                self.pass_on(signal);
            }
            self.notice_stops()?;
        }
    }

    /// Releases the locks of a wrapper that was killed, if no process of the command can be left.
    fn release_for_the_wrapper(&mut self) -> io::Result<()> {
        let is_killed = !self.control.is_open() && self.termination.has_begun();
        let Some(order) = self.release_order.take().filter(|_| is_killed) else {
            return Ok(());
        };
        // The table of processes may miss one that is being forked. But every process of the command descends from a child
        // of this process, which adopts orphans. It does so only on Linux.
        reap_orphans(None)?;
        if cfg!(target_os = "linux") && !has_children()? {
            let released = order.carry_out();
            released.map_err(|failure| io::Error::other(failure.to_string()))?;
        }
        Ok(())
    }

    /// Reports the end to the wrapper, and wakes it if it is stopped.
    fn say_goodbye(&mut self, status: ExitStatus) -> io::Result<()> {
        self.report(Report::Ended(status));
        while self.stop != Stop::None && self.control.is_open() {
            self.wake_the_wrapper();
            self.sleep_until(Some(SystemClock.now() + WAKE_AGAIN))?;
        }
        Ok(())
    }

    fn wake_the_wrapper(&self) {
        // While it has the pipe open, it is alive and is the parent.
        if self.control.is_open() {
            let _ = kill(getppid(), Signal::SIGCONT);
        }
    }

    fn terminate(&mut self) -> io::Result<()> {
        if !self.lost {
            self.report(Report::Ending);
        }
        self.process_tree.signal(Signal::SIGTERM)?;
        // A stopped process gets the other signal only when it continues.
        self.process_tree.signal(Signal::SIGCONT)
    }

    /// Whether CMD ended by itself; once the ending has begun, whether no process is left.
    fn is_over(&self) -> io::Result<bool> {
        if self.termination.has_begun() {
            return Ok(self.process_tree.survivors()?.is_empty());
        }
        self.has_ended()
    }

    /// Whether CMD ended.
    fn has_ended(&self) -> io::Result<bool> {
        children::has_ended(self.pid)
    }

    /// Sleeps until `wake`, a message, or a change among the children. It may return early.
    fn sleep_until(&mut self, wake: Option<BootInstant>) -> io::Result<()> {
        let timeout = wake.map(|wake| poll_timeout(wake.since(SystemClock.now())));
        let mut sources = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        sources.extend(
            self.control
                .fd()
                .map(|fd| PollFd::new(fd, PollFlags::POLLIN)),
        );
        match poll(&mut sources, timeout.unwrap_or(PollTimeout::NONE)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let has_control = sources.get(1).and_then(PollFd::any) == Some(true);
        let is_told = self.read_signals()?;
        // This process adopts orphans below it as long as the command lives. Afterwards the wrapper
        // adopts them.
        if is_told && (self.termination.has_begun() || !self.has_ended()?) {
            reap_orphans(Some(self.pid))?;
        }
        if has_control {
            for message in self.control.take()? {
                self.handle(message);
            }
        }
        Ok(())
    }

    /// Reads the signals of this process, and returns whether a child has changed.
    fn read_signals(&mut self) -> io::Result<bool> {
        let mut has_child = false;
        while let Some(number) = self.signals.take()? {
            if number == Signal::SIGCHLD as i32 {
                has_child = true;
            } else {
                self.forwarding.received(number, SystemClock.now());
            }
        }
        Ok(has_child)
    }

    fn handle(&mut self, message: ControlMessage) {
        match message {
            ControlMessage::Release(order) => self.release_order = Some(order),
            ControlMessage::Deadline(deadline) => self.termination.deadline_moved(deadline),
            ControlMessage::Lost => self.lost = true,
            ControlMessage::Continue => {
                self.stop = Stop::None;
                self.pass_on(Signal::SIGCONT as i32);
            }
            ControlMessage::Signal(number) => {
                self.forwarding.requested(number, SystemClock.now());
            }
        }
    }

    fn pass_on(&self, number: i32) {
        if let Ok(signal) = Signal::try_from(number) {
            // A process that has ended meanwhile needs no signal.
            let _ = match self.group {
                Some(group) => killpg(group, signal),
                None => kill(self.pid, signal),
            };
        }
    }

    /// Reports a stop of CMD to the wrapper, so that it stops too. Wakes the wrapper if CMD was
    /// continued from outside, because a stopped wrapper does not renew.
    fn notice_stops(&mut self) -> io::Result<()> {
        while let Some(change) = children::next_change(self.pid)? {
            if let Some(signal) = change.stopping_signal() {
                self.stop = Stop::Told;
                self.report(Report::Stopped(signal));
            } else if change.continued() && self.stop == Stop::Told {
                self.stop = Stop::Over;
            }
        }
        Ok(())
    }

    fn report(&mut self, report: Report) {
        // If the wrapper is gone, the closed control pipe shows that as well.
        let _ = writeln!(self.report, "{report}");
    }
}

fn earlier(one: Option<BootInstant>, other: Option<BootInstant>) -> Option<BootInstant> {
    one.into_iter().chain(other).min()
}

/// How long to poll at most if the next thing to do is `left` away. Such a timer stops while the machine sleeps, so a
/// long wait is cut into ticks.
fn poll_timeout(left: Duration) -> PollTimeout {
    let millis = left.min(TICK).as_millis();
    // Rounded up, as the rest of a millisecond is not over yet.
    PollTimeout::from(u8::try_from(millis).unwrap_or(u8::MAX).saturating_add(1))
}

/// How late the guardian may notice that the machine has slept past a deadline.
const TICK: Duration = Duration::from_millis(250);
/// How long to wait after SIGKILL before it is sent again to the remaining processes.
const KILL_AGAIN: Duration = Duration::from_millis(20);
/// How long the wrapper may take to continue before it is woken again.
const WAKE_AGAIN: Duration = Duration::from_millis(50);
