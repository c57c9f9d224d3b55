use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Signals that are blocked, to be read one after the other.
#[derive(Debug)]
pub(crate) struct SignalQueue(SignalFd);

impl SignalQueue {
    /// The queue of these signals, which the caller has blocked.
    pub(crate) fn of(signals: &SigSet) -> io::Result<Self> {
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self(SignalFd::with_flags(signals, flags)?))
    }

    /// Takes the number of the next signal; `None` if there is none now.
    pub(crate) fn take(&self) -> io::Result<Option<i32>> {
        let signal = self.0.read_signal()?;
        Ok(signal.map(|signal| signal.ssi_signo.cast_signed()))
    }
}

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for SignalQueue {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::signal::{Signal, raise};

    use super::*;

    #[test]
    fn blocked_signals_are_queued() {
        let set = SigSet::from(Signal::SIGUSR1);
        set.thread_block().unwrap();
        let queue = SignalQueue::of(&set).unwrap();
        assert_eq!(queue.take().unwrap(), None);
        raise(Signal::SIGUSR1).unwrap();
        let mut ready = [PollFd::new(queue.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut ready, PollTimeout::from(30_000_u16)), Ok(1));
        assert_eq!(queue.take().unwrap(), Some(Signal::SIGUSR1 as i32));
        assert_eq!(queue.take().unwrap(), None);
    }
}
