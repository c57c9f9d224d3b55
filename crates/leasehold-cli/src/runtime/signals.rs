use std::io;

use nix::sys::signal::{SigSet, Signal, raise};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::output::Output;
use crate::output::exit_code::ENDING;
use crate::output::failure::Failure;
use crate::system::SignalQueue;
use crate::system::raw::is_ignored;

/// The signals that the wrapper reads and passes on to CMD.
///
/// They are blocked before the first thread starts, and so in all threads. A signal that was ignored at
/// the start of the program (for example by nohup) stays ignored.
#[derive(Debug)]
pub(crate) struct Signals(AsyncFd<SignalQueue>);

/// A signal that arrived, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived(i32);

impl Signals {
    /// Blocks the signals. Call it before any thread is started, outside of a runtime.
    pub(crate) fn block() -> Result<SignalQueue, Failure> {
        block().map_err(|error| Failure::of_start(&error))
    }

    /// Reads the signals that were blocked. Must be called inside a tokio runtime.
    #[allow(
        deprecated,
        reason = "its successor is unsafe, for types that give away a descriptor they do not own: \
                  a queue owns its descriptor for as long as it lives"
    )]
    pub(crate) fn new(signals: SignalQueue) -> Result<Self, Failure> {
        let signals = AsyncFd::with_interest(signals, Interest::READABLE)
            .map_err(|error| Failure::of_start(&error))?;
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
            match self.0.get_ref().take()? {
                Some(number) => return Ok(Arrived(number)),
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
                return Ok(signal.number());
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
    pub(crate) fn number(self) -> i32 {
        self.0
    }

    /// Whether it asks the program to end.
    pub(crate) fn ends(self) -> bool {
        ENDING.iter().any(|signal| *signal as i32 == self.0)
    }

    pub(crate) fn is_stop(self) -> bool {
        self.0 == Signal::SIGTSTP as i32
    }
}

fn block() -> io::Result<SignalQueue> {
    let read: SigSet = PASSED_ON
        .into_iter()
        .filter(|signal| !is_ignored(*signal))
        .collect();
    let mut blocked = read;
    // Taking the terminal back from the background must not stop the wrapper.
    blocked.add(Signal::SIGTTOU);
    blocked.thread_block()?;
    SignalQueue::of(&read)
}

/// Ends the program by `signal`, as if the program had never caught it. A shell then ends its script too, and systemd
/// counts a clean end. Returns if the signal has no effect, as in the first process of a container.
pub(crate) fn die_of(signal: Signal) {
    let _ = raise(signal);
    let _ = SigSet::from(signal).thread_unblock();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ending_signals_end() {
        let arrived = |signal| Arrived(signal as i32);
        assert!(arrived(Signal::SIGTERM).ends() && arrived(Signal::SIGHUP).ends());
        assert!(!arrived(Signal::SIGWINCH).ends() && !arrived(Signal::SIGTSTP).ends());
        assert!(arrived(Signal::SIGTSTP).is_stop());
    }
}
