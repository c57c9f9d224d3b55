use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use leasehold::env::Env;
use nix::sys::time::TimeSpec;
use nix::sys::timer::TimerSetTimeFlags;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags};
use tokio::io::unix::AsyncFd;

use crate::error::Fallible;

/// Sleeps for exactly the given time. The timer of tokio rounds up to the next millisecond, so a section
/// of one millisecond would last two.
#[derive(Debug)]
pub(super) struct Pause(AsyncFd<Timer>);

#[derive(Debug)]
struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Pause {
    pub(super) fn new() -> Fallible<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        #[expect(
            deprecated,
            reason = "unsound only where the descriptor is closed meanwhile: the timer owns it. Its \
                      successor is `unsafe`, which is denied here"
        )]
        let timer = AsyncFd::new(Timer(timer));
        Ok(Self(timer?))
    }

    pub(super) async fn sleep(&mut self, span: Duration) -> Fallible {
        let once = Expiration::OneShot(TimeSpec::from_duration(span));
        let timer = &self.0.get_ref().0;
        timer.set(once, TimerSetTimeFlags::empty())?;
        loop {
            let mut ready = self.0.readable().await?;
            if let Ok(expired) = ready.try_io(|timer| Ok(timer.get_ref().0.wait()?)) {
                return Ok(expired?);
            }
        }
    }
}

/// The pauses of a waiter. With equal pauses, waiters would fall into step with each other. So there are ten
/// different pauses in random order, again and again, and all waiters pause for the same time in total.
#[derive(Debug)]
pub(super) struct Pauses {
    span: Duration,
    env: Env,
    left: Vec<Duration>,
}

impl Pauses {
    /// About `span`, half of it more or less.
    pub(super) fn about(span: Duration) -> Self {
        Self {
            span,
            env: Env::default(),
            left: Vec::new(),
        }
    }

    pub(super) fn next(&mut self) -> Duration {
        if self.left.is_empty() {
            let steps = (0..10).map(|step| self.span * (55 + 10 * step) / 100);
            self.left.extend(steps);
        }
        let count = u64::try_from(self.left.len()).unwrap_or(u64::MAX);
        let drawn = self.env.entropy.next_u64() % count;
        self.left
            .swap_remove(usize::try_from(drawn).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_sleeps_as_long_as_was_said() {
        let began = std::time::Instant::now();
        let mut pause = Pause::new().expect("a timer");
        for _ in 0..2 {
            pause.sleep(Duration::from_millis(3)).await.expect("sleep");
        }
        assert!(began.elapsed() >= Duration::from_millis(6));
    }

    #[test]
    fn ten_of_them_are_as_long_as_any_other_ten_and_all_differ() {
        let span = Duration::from_millis(5);
        let mut pauses = Pauses::about(span);
        for _ in 0..3 {
            let mut ten: Vec<Duration> = (0..10).map(|_| pauses.next()).collect();
            assert_eq!(ten.iter().sum::<Duration>(), span * 10);
            ten.sort_unstable();
            ten.dedup();
            assert_eq!(ten.len(), 10);
            assert!(ten[0] > span / 2 && ten[9] < span * 3 / 2);
        }
    }
}
