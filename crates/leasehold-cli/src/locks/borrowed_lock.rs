use std::cell::Cell;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock, within};
use leasehold::look::Holder;
use leasehold::{Client, Error, Mode};

use crate::locks::outer_runs::OuterLock;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::holder_text;

/// A lock that an outer run holds, and under which the command of this run runs too.
///
/// The outer run renews it, and ends all its child processes on loss, including this command. This run
/// only checks, at its start and repeatedly, that the outer run still holds it, because that may have
/// ended and left this run behind.
pub(crate) struct BorrowedLock {
    client: Client,
    lock: OuterLock,
    /// How long the result of a check is valid.
    every: Duration,
    next_look: Cell<BootInstant>,
    /// The last check did not find the holder.
    missed: Cell<bool>,
}

impl BorrowedLock {
    /// Checks that the holder still holds the lock, in a mode that includes `wanted`.
    pub(crate) async fn enter(
        client: Client,
        lock: OuterLock,
        wanted: Mode,
        every: Duration,
    ) -> Result<Self, Failure> {
        let outer_lock = Self {
            client,
            lock,
            every,
            next_look: Cell::new(SystemClock.now() + every),
            missed: Cell::new(false),
        };
        let name = outer_lock.lock.name();
        let Some(holder) = outer_lock.holder().await? else {
            let text = format!(
                "lock {name:?}: {GONE}, with fence {}",
                outer_lock.lock.fence()
            );
            return Err(Failure::new(ExitCode::LOST, text));
        };
        match refusal(holder.mode, wanted) {
            None => Ok(outer_lock),
            Some(rule) => Err(Failure::usage(format!(
                "lock {name:?} is held by an outer run, {}: {rule}",
                holder_text::phrase(&holder)
            ))),
        }
    }

    pub(crate) fn lock(&self) -> &OuterLock {
        &self.lock
    }

    /// Resolves with the reason once the holder no longer holds the lock. If the store does not answer,
    /// the holder watches its own deadline.
    ///
    /// Cancel safe: the next call continues where this one was.
    pub(crate) async fn lost(&self) -> &'static str {
        loop {
            SystemClock.sleep_until(self.next_look.get()).await;
            let found = self.holder().await;
            let missing = matches!(found, Ok(None));
            // While servers come and go, too few may name it for a moment.
            if missing && self.missed.get() {
                return GONE;
            }
            if found.is_ok() {
                self.missed.set(missing);
            }
            let pause = if missing { LOOK_AGAIN } else { self.every };
            self.next_look.set(SystemClock.now() + pause);
        }
    }

    /// Why the lock is lost, if a last check shows that it is.
    pub(crate) async fn last_look(&self) -> Option<&'static str> {
        let limit = SystemClock.now() + LAST_LOOK;
        let found = within(&SystemClock, limit, self.holder()).await;
        matches!(found, Some(Ok(None))).then_some(GONE)
    }

    async fn holder(&self) -> Result<Option<Holder>, Error> {
        let holders = self.client.holders(self.lock.name()).await?;
        let found = holders.into_iter();
        Ok(found.rev().find(|holder| self.lock.is_held_by(holder)))
    }
}

/// Why a holder in mode `held` cannot share its lease in mode `wanted`, if so.
pub(crate) fn refusal(held: Mode, wanted: Mode) -> Option<&'static str> {
    match (held, wanted) {
        (_, Mode::Permit(_)) => {
            Some("--nested cannot take a permit of a lock that is already held")
        }
        (Mode::Permit(_), _) => Some("the outer run holds one permit, not the whole lock"),
        (Mode::Shared, Mode::Exclusive) => {
            Some("the outer run shares the lock; use -s here as well")
        }
        (Mode::Exclusive, _) | (Mode::Shared, Mode::Shared) => None,
    }
}

const GONE: &str = "the outer run no longer holds it";
/// The pause after a check that did not find the holder.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How long a last check may delay the end.
const LAST_LOOK: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::store::Permits;

    #[test]
    fn nobody_lends_more_than_it_has() {
        let (alone, shared) = (Mode::Exclusive, Mode::Shared);
        let permit = Mode::Permit(Permits::new(3).unwrap());
        for (held, wanted) in [(alone, alone), (alone, shared), (shared, shared)] {
            assert_eq!(refusal(held, wanted), None, "{wanted} under {held}");
        }
        let refused = [
            (shared, alone),
            (alone, permit),
            (shared, permit),
            (permit, permit),
            (permit, alone),
            (permit, shared),
        ];
        for (held, wanted) in refused {
            assert!(refusal(held, wanted).is_some(), "{wanted} under {held}");
        }
    }
}
