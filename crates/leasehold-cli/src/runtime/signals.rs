use std::fs;
use std::io;

use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use tokio::io::unix::AsyncFd;

use crate::output::Output;
use crate::output::failure::Failure;

/// The signals that the wrapper reads and passes on to CMD.
///
/// They are blocked before the first thread starts, and so in all threads. A signal that was ignored at
/// the start of the program (for example by nohup) stays ignored.
#[derive(Debug)]
pub(crate) struct Signals(AsyncFd<SignalFd>);

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) number: i32,
    /// The sender; `None` if it was the kernel, as for the keys of a terminal.
    pub(crate) sender: Option<i32>,
}

impl Signals {
    /// Blocks the signals. Call it before any thread is started, outside of a runtime.
    pub(crate) fn block() -> Result<SignalFd, Failure> {
        block().map_err(|error| Failure::of_start(&error))
    }

    /// Reads the signals that were blocked. Must be called inside a tokio runtime.
    #[allow(
        deprecated,
        reason = "its successor is unsafe, for types that give away a descriptor they do not own: \
                  a SignalFd owns its descriptor for as long as it lives"
    )]
    pub(crate) fn new(signals: SignalFd) -> Result<Self, Failure> {
        let signals = AsyncFd::new(signals).map_err(|error| Failure::of_start(&error))?;
        Ok(Self(signals))
    }

    /// The next signal.
    ///
    /// Cancel safe: a signal is taken only when it is returned.
    pub(crate) async fn next(&self) -> Result<Arrived, Failure> {
        let arrived = self.arrived().await;
        arrived.map_err(|error| Failure::of("cannot read signals", &error))
    }

    async fn arrived(&self) -> io::Result<Arrived> {
        loop {
            let mut ready = self.0.readable().await?;
            match self.0.get_ref().read_signal()? {
                Some(info) => {
                    return Ok(Arrived {
                        number: i32::try_from(info.ssi_signo).unwrap_or(0),
                        sender: (info.ssi_code <= 0).then_some(info.ssi_pid.cast_signed()),
                    });
                }
                None => ready.clear_ready(),
            }
        }
    }

    /// The next signal that asks the program to end, while there is no command to stop: a stop from the
    /// keyboard stops the program itself.
    ///
    /// Cancel safe: a signal is taken only when it is acted on.
    pub(crate) async fn ending(&self, output: &Output) -> Result<i32, Failure> {
        self.ending_past_stops(output, || ()).await
    }

    /// As [`ending`](Self::ending), and calls `stopped` after each stop.
    pub(crate) async fn ending_past_stops(
        &self,
        output: &Output,
        stopped: impl Fn(),
    ) -> Result<i32, Failure> {
        loop {
            let signal = self.next().await?;
            if signal.ends() {
                return Ok(signal.number);
            }
            if signal.is_stop() {
                output.clear_status();
                output.flush();
                raise(Signal::SIGSTOP).map_err(|errno| Failure::of("cannot stop", &errno))?;
                stopped();
            }
        }
    }
}

impl Arrived {
    /// Whether it asks the program to end.
    pub(crate) fn ends(self) -> bool {
        [
            Signal::SIGHUP,
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGTERM,
        ]
        .iter()
        .any(|signal| *signal as i32 == self.number)
    }

    pub(crate) fn is_stop(self) -> bool {
        self.number == Signal::SIGTSTP as i32
    }
}

fn block() -> io::Result<SignalFd> {
    let ignored = ignored_signals(&fs::read_to_string("/proc/self/status")?);
    let mut read = SigSet::empty();
    for signal in PASSED_ON {
        if ignored & (1 << (signal as i32 - 1)) == 0 {
            read.add(signal);
        }
    }
    let mut blocked = read;
    // Taking the terminal back from the background must not stop the wrapper.
    blocked.add(Signal::SIGTTOU);
    blocked.thread_block()?;
    Ok(SignalFd::with_flags(
        &read,
        SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
    )?)
}

/// The signals that the wrapper passes on.
pub(crate) const PASSED_ON: [Signal; 9] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
];

/// The set of ignored signals in the text of `/proc/<pid>/status`; bit n - 1 is signal n.
fn ignored_signals(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!(ignored_signals(status), 0x1001);
        assert_eq!(ignored_signals("Name:\tx\n"), 0);
    }

    #[test]
    fn only_the_ending_signals_end() {
        let arrived = |signal| Arrived {
            number: signal as i32,
            sender: None,
        };
        assert!(arrived(Signal::SIGTERM).ends() && arrived(Signal::SIGHUP).ends());
        assert!(!arrived(Signal::SIGWINCH).ends() && !arrived(Signal::SIGTSTP).ends());
        assert!(arrived(Signal::SIGTSTP).is_stop());
    }
}
