//! What the wall clock of a client may assert.

use std::time::Duration;

use crate::{Error, ErrorKind, Fence, Owner, WallTime};

impl WallTime {
    /// The latest reading that a client may use, in the year 2112. A fence follows the clock, so a clock beyond this would
    /// leave less than half of all fences to the clients after it. A clock in another unit is far beyond it.
    pub const PLAUSIBLE_MAX: Self = Self::from_micros(1 << 52);

    /// How far the clocks of a client and of a server may be apart.
    pub const APART_MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// Returns whether a clock that is about right can show this.
    pub fn is_plausible(self) -> bool {
        self <= Self::PLAUSIBLE_MAX
    }

    /// Checks the reading of a client's wall clock before anything is derived from it. `server` is the reading of the
    /// server's clock, if the server reports it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the reading is not [plausible](Self::is_plausible), or if it is more than
    /// [`WallTime::APART_MAX`] apart from the server's.
    pub fn check(self, server: Option<Self>) -> Result<(), Error> {
        if !self.is_plausible() {
            let text = format!(
                "this machine's clock reads {} µs after 1970, which is after the year 2112; set the clock, since fences follow it",
                self.as_micros()
            );
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        let apart = server.map_or(Duration::ZERO, |server| self.distance(server));
        if apart > Self::APART_MAX {
            let days = apart.as_secs_f64() / Self::APART_MAX.as_secs_f64();
            let text = format!(
                "this machine's clock and the server's are {days:.1} days apart: at most 1 is allowed, since fences \
                 follow the clock"
            );
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        Ok(())
    }
}

impl Fence {
    /// Returns the fence of a new grant: greater than `last`, the greatest that the store granted before, and than
    /// `proposal`, the wall clock of the client. The rule of every store.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the proposal is not [plausible](WallTime::is_plausible), and
    /// [`ErrorKind::Corrupt`] if no fence follows `last`.
    pub fn after(last: Option<Self>, proposal: WallTime) -> Result<Self, Error> {
        proposal.check(None)?;
        let last = last.map_or(0, Self::get);
        let next = last.max(proposal.as_micros()).checked_add(1);
        let next = next.and_then(Self::new).filter(|fence| *fence <= Self::MAX);
        next.ok_or_else(|| {
            let text = format!("the last fence of the lock is {last}, and no fence follows it");
            Error::new(ErrorKind::Corrupt, text)
        })
    }
}

impl Owner {
    /// Returns the [instant](Self::since) at which the owner was drawn, unless no clock shows it: the clock of its client was wrong,
    /// or it contains none.
    pub fn plausible_since(self) -> Option<WallTime> {
        Some(self.since()).filter(|since| since.is_plausible())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClientId;
    use crate::entropy::tests::RandomEntropy;

    const NOW: WallTime = WallTime::from_micros(1_795_000_000_000_000);
    /// Milliseconds, taken for seconds.
    const WRONG_UNIT: WallTime = WallTime::from_micros(NOW.as_micros() * 1_000);
    const DAY: u64 = 24 * 60 * 60 * 1_000_000;

    fn fence(value: u64) -> Option<Fence> {
        Fence::new(value)
    }

    fn kind<T>(result: Result<T, Error>) -> Option<ErrorKind> {
        result.err().map(|error| error.kind())
    }

    #[test]
    fn fence_follows_the_last_and_the_clock() {
        let now = NOW.as_micros();
        let after = |last, proposal| Fence::after(last, proposal).ok();
        assert_eq!(after(None, NOW), fence(now + 1));
        assert_eq!(after(fence(now - 5), NOW), fence(now + 1));
        assert_eq!(after(fence(now + 5), NOW), fence(now + 6));
        assert_eq!(after(None, WallTime::from_micros(0)), fence(1));
    }

    #[test]
    fn no_clock_uses_up_the_fences() {
        for clock in [WRONG_UNIT, WallTime::from_micros(u64::MAX)] {
            let refused = Fence::after(None, clock);
            assert_eq!(kind(refused), Some(ErrorKind::InvalidInput), "{clock:?}");
        }
        let latest = Fence::after(None, WallTime::PLAUSIBLE_MAX).unwrap();
        assert!(latest.get() <= Fence::MAX.get() / 2 + 2);
        for last in [Fence::MAX.get(), u64::MAX] {
            let used_up = Fence::after(fence(last), NOW);
            assert_eq!(kind(used_up), Some(ErrorKind::Corrupt), "{last}");
        }
    }

    #[test]
    fn clock_is_compared_with_the_servers() {
        let server = |micros| NOW.check(Some(WallTime::from_micros(micros)));
        for near in [NOW.as_micros() - DAY, NOW.as_micros() + DAY] {
            assert_eq!(kind(server(near)), None);
        }
        for far in [NOW.as_micros() - DAY - 1, NOW.as_micros() + DAY + 1] {
            assert_eq!(kind(server(far)), Some(ErrorKind::InvalidInput));
        }
        assert_eq!(kind(NOW.check(None)), None);
        assert!(WRONG_UNIT.check(Some(WRONG_UNIT)).is_err());
    }

    #[test]
    fn owner_of_a_wrong_clock_names_no_instant() {
        let client = ClientId::random(&RandomEntropy);
        let drawn = |at| Owner::at(client, at, &RandomEntropy).plausible_since();
        assert_eq!(drawn(NOW), Some(NOW));
        let beyond = WallTime::from_micros(WallTime::PLAUSIBLE_MAX.as_micros() + 1);
        assert_eq!(drawn(beyond), None);
    }
}
