use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use nix::libc::timespec;
use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};
use nix::sys::signal::SigSet;

/// Signals that are blocked, to be read one after the other. The kernel reports them although they are blocked.
#[derive(Debug)]
pub(crate) struct SignalQueue(Kqueue);

impl SignalQueue {
    /// The queue of these signals, which the caller has blocked.
    pub(crate) fn of(signals: &SigSet) -> io::Result<Self> {
        let queue = Kqueue::new()?;
        let wanted: Vec<KEvent> = signals
            .iter()
            .map(|signal| event(signal as usize))
            .collect();
        queue.kevent(&wanted, &mut [], Some(AT_ONCE))?;
        Ok(Self(queue))
    }

    /// Takes the number of the next signal; `None` if there is none now.
    pub(crate) fn take(&self) -> io::Result<Option<i32>> {
        let mut found = [event(0)];
        let count = self.0.kevent(&[], &mut found, Some(AT_ONCE))?;
        Ok((count > 0).then(|| found[0].ident() as i32))
    }
}

fn event(signal: usize) -> KEvent {
    KEvent::new(
        signal,
        EventFilter::EVFILT_SIGNAL,
        EvFlags::EV_ADD,
        FilterFlag::empty(),
        0,
        0,
    )
}

const AT_ONCE: timespec = timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for SignalQueue {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}
