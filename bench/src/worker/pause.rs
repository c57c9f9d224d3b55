use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timer::TimerSetTimeFlags;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags};
use tokio::io::unix::AsyncFd;

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
    pub(super) fn new() -> Result<Self, String> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags);
        let timer = timer.map_err(|error| format!("a timer: {error}"))?;
        #[expect(
            deprecated,
            reason = "unsound only where the descriptor is closed meanwhile: the timer owns it. Its \
                      successor is `unsafe`, which is denied here"
        )]
        let timer = AsyncFd::new(Timer(timer));
        Ok(Self(timer.map_err(|error| format!("a timer: {error}"))?))
    }

    pub(super) async fn sleep(&mut self, span: Duration) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("a timer: {error}");
        let timer = &self.0.get_ref().0;
        let once = Expiration::OneShot(TimeSpec::from_duration(span));
        timer
            .set(once, TimerSetTimeFlags::empty())
            .map_err(|error| failed(&error))?;
        loop {
            let mut ready = self.0.readable().await.map_err(|error| failed(&error))?;
            let expired = ready.try_io(|timer| Ok(timer.get_ref().0.wait()?));
            match expired {
                Ok(outcome) => return outcome.map_err(|error| failed(&error)),
                Err(_not_yet) => {}
            }
        }
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
}
