//! The guardian: the process that stands between the wrapper, which holds the lock, and CMD.
//!
//! The wrapper may be killed at any time, and a killed process cannot clean up after itself. So
//! another one watches over it. The guardian does not *lead* CMD's process group but stands beside
//! it, in a group of its own: a SIGKILL sent to CMD's group would else also kill the one that must
//! wait for the end of the group; and `kill -9 %job`, which goes to the wrapper's group, does not
//! take it along either.
//!
//! It needs no store. It is told each new deadline, and ends CMD's group and all other descendants
//! so early before it that they are gone when it comes; at once when it is told that the lock is
//! lost, or when the pipe closes because the wrapper is gone. On the file store it keeps the locks'
//! descriptors open, so that the kernel frees them only once everything they guard is gone.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, getppid};

use crate::exit_code::ExitCode;
use crate::run::descendants::Family;
use crate::run::ending::{Ending, Step};
use crate::run::guardian_args::GuardianArgs;
use crate::run::nesting::{self, Nesting};
use crate::run::orders::Orders;
use crate::run::protocol::{Order, Report};
use crate::run::raw;
use crate::run::terminal::Terminal;

/// Guards one command from its start to its end.
pub(crate) fn guard(args: &GuardianArgs) -> ExitCode {
    match start(args) {
        Ok(Some(mut guardian)) => guardian.watch_to_the_end(),
        Ok(None) => ExitCode::FAILURE,
        // Without its pipes it cannot even say why; the wrapper sees that it is gone.
        Err(_) => ExitCode::FAILURE,
    }
}

fn start(args: &GuardianArgs) -> io::Result<Option<Guardian>> {
    let orders = Orders::new(File::from(raw::adopt(args.control)?));
    let mut report = File::from(raw::adopt(args.report)?);
    let locks = args.keep.iter().map(|fd| raw::adopt(*fd));
    let locks = locks.collect::<io::Result<_>>()?;
    SigSet::all().thread_block()?;
    let signals = SignalFd::with_flags(
        &SigSet::from(Signal::SIGCHLD),
        SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
    )?;
    prctl::set_child_subreaper(true)?;
    let mut ending = Ending::new(
        Duration::from_nanos(args.grace),
        Duration::from_nanos(args.margin),
        args.deadline.map(BootInstant::from_nanos),
    );
    if ending.step(SystemClock.now(), false) == Step::Terminate {
        writeln!(report, "{}", Report::TooLate)?;
        return Ok(None);
    }
    let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC)?;
    let mut family = Family::below_this_process()?;
    let child = match command(args).spawn() {
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
        family.set_group(group);
    }
    let mut guardian = Guardian {
        orders,
        report,
        signals,
        timer,
        child,
        pid,
        group,
        family,
        ending,
        lost: false,
        stop: Stop::None,
        _locks: locks,
    };
    guardian.report(Report::Started(pid.as_raw()));
    Ok(Some(guardian))
}

fn command(args: &GuardianArgs) -> Command {
    let (program, arguments) = match args.command.split_first() {
        Some((program, arguments)) => (program.as_os_str(), arguments),
        None => ("".as_ref(), &[][..]),
    };
    let mut command = Command::new(program);
    let group_guardian = args.nested_in.map_or(Pid::this(), Pid::from_raw);
    command.args(arguments).env(
        nesting::VARIABLE,
        Nesting::variable(group_guardian, &args.around),
    );
    if args.nested_in.is_none() {
        command.process_group(0);
    }
    let tty = args.foreground.then(Terminal::open).flatten();
    raw::bind_to_this_process(&mut command, tty.map(Terminal::into_fd));
    command
}

struct Guardian {
    orders: Orders,
    report: File,
    signals: SignalFd,
    timer: TimerFd,
    /// Not reaped before the very end, so that neither its id nor its group's can be used again
    /// while they are signalled.
    child: Child,
    pid: Pid,
    group: Option<Pid>,
    family: Family,
    ending: Ending,
    /// The lock is lost, or the wrapper gone.
    lost: bool,
    stop: Stop,
    _locks: Vec<OwnedFd>,
}

/// What the wrapper makes of a stop of the command. It stops itself when it hears of it, and that
/// takes a while; so a wake-up is repeated until the wrapper shows that it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// It heard of none since it last went on.
    None,
    /// It was told, and did not go on yet.
    Told,
    /// It was told, but there is no reason to stay stopped any more.
    Over,
}

impl Guardian {
    fn watch_to_the_end(&mut self) -> ExitCode {
        match self.watch().and_then(|status| self.say_goodbye(status)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => {
                // It cannot watch any longer, so nothing may be left to watch over.
                let _ = self.family.signal(Signal::SIGKILL);
                ExitCode::FAILURE
            }
        }
    }

    fn watch(&mut self) -> io::Result<ExitStatus> {
        let mut killing = false;
        loop {
            let mut wake = match self.ending.step(SystemClock.now(), self.lost) {
                Step::Wait(instant) => instant,
                Step::Terminate => {
                    self.terminate()?;
                    continue;
                }
                Step::Kill => {
                    killing = true;
                    None
                }
            };
            if killing {
                // Repeated, for whoever was being forked in between was missed.
                self.family.signal(Signal::SIGKILL)?;
                wake = Some(SystemClock.now() + KILL_AGAIN);
            }
            if self.stop == Stop::Over {
                self.wake_the_wrapper();
                let again = SystemClock.now() + WAKE_AGAIN;
                wake = Some(wake.map_or(again, |wake| wake.min(again)));
            }
            if self.is_over()? {
                return self.child.wait();
            }
            self.sleep_until(wake)?;
            self.notice_stops()?;
        }
    }

    /// Tells the wrapper how it ended; one that is stopped cannot hear it.
    fn say_goodbye(&mut self, status: ExitStatus) -> io::Result<()> {
        self.report(Report::Ended(status));
        while self.stop != Stop::None && self.orders.are_open() {
            self.wake_the_wrapper();
            self.sleep_until(Some(SystemClock.now() + WAKE_AGAIN))?;
        }
        Ok(())
    }

    fn wake_the_wrapper(&self) {
        // As long as it has the pipe open it lives, and is the parent.
        if self.orders.are_open() {
            let _ = kill(getppid(), Signal::SIGCONT);
        }
    }

    fn terminate(&mut self) -> io::Result<()> {
        if !self.lost {
            self.report(Report::Ending);
        }
        self.family.signal(Signal::SIGTERM)?;
        // A stopped process receives the other one only when it goes on.
        self.family.signal(Signal::SIGCONT)
    }

    /// Whether CMD ended by itself; or, once the ending has begun, whether nobody is left.
    fn is_over(&self) -> io::Result<bool> {
        if self.ending.has_begun() {
            return Ok(self.family.survivors()?.is_empty());
        }
        self.has_ended()
    }

    /// Whether CMD ended.
    fn has_ended(&self) -> io::Result<bool> {
        let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(self.pid), ended) {
            Ok(WaitStatus::StillAlive) => Ok(false),
            // EINVAL: killed by a real-time signal, which has no name.
            Ok(_) | Err(Errno::EINVAL) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sleeps until `wake`, an order, or a change among the children.
    fn sleep_until(&mut self, wake: Option<BootInstant>) -> io::Result<()> {
        match wake {
            Some(instant) => {
                // An expiration of zero would turn the timer off.
                let at = Duration::from_nanos(instant.as_nanos().max(1));
                self.timer.set(
                    Expiration::OneShot(at.into()),
                    TimerSetTimeFlags::TFD_TIMER_ABSTIME,
                )?;
            }
            None => self.timer.unset()?,
        }
        let mut sources = vec![
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.timer.as_fd(), PollFlags::POLLIN),
        ];
        sources.extend(
            self.orders
                .fd()
                .map(|fd| PollFd::new(fd, PollFlags::POLLIN)),
        );
        match poll(&mut sources, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ordered = sources.get(2).and_then(PollFd::any) == Some(true);
        let is_told = self.signals.read_signal()?.is_some();
        // Orphans below come to this process, which lives as long as the command. Those that it leaves
        // go up to the wrapper.
        if is_told && (self.ending.has_begun() || !self.has_ended()?) {
            self.family.reap_orphans(Some(self.pid))?;
        }
        if ordered {
            for order in self.orders.take()? {
                self.obey(order);
            }
        }
        Ok(())
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Deadline(deadline) => self.ending.deadline_moved(deadline),
            Order::Lost => self.lost = true,
            Order::Signal(number) => {
                let Ok(signal) = Signal::try_from(number) else {
                    return;
                };
                if signal == Signal::SIGCONT {
                    self.stop = Stop::None;
                }
                // Whoever has ended meanwhile needs no signal.
                let _ = match self.group {
                    Some(group) => killpg(group, signal),
                    None => kill(self.pid, signal),
                };
            }
        }
    }

    /// Tells the wrapper when CMD is stopped, so that it stops too; and wakes it when somebody
    /// else lets CMD go on, for a stopped wrapper renews nothing.
    fn notice_stops(&mut self) -> io::Result<()> {
        let changed = WaitPidFlag::WSTOPPED | WaitPidFlag::WCONTINUED | WaitPidFlag::WNOHANG;
        loop {
            match waitid(Id::Pid(self.pid), changed) {
                Ok(WaitStatus::Stopped(_, signal)) => {
                    self.stop = Stop::Told;
                    self.report(Report::Stopped(signal as i32));
                }
                Ok(WaitStatus::Continued(_)) => {
                    if self.stop == Stop::Told {
                        self.stop = Stop::Over;
                    }
                }
                Ok(_) | Err(Errno::ECHILD) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn report(&mut self, report: Report) {
        // A wrapper that is gone hears nothing; the closed pipe of orders says so as well.
        let _ = writeln!(self.report, "{report}");
    }
}

/// How long to wait for the victims of SIGKILL before it is sent to whoever is left.
const KILL_AGAIN: Duration = Duration::from_millis(20);
/// How long the wrapper may take to show that it goes on before it is woken again.
const WAKE_AGAIN: Duration = Duration::from_millis(50);
