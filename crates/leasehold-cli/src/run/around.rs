use std::cell::Cell;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock, within};
use leasehold::{Client, Error, Holder, Mode};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::holder_text;
use crate::run::nesting::LockAround;

/// A lock that a run around this one holds, and under which this one's command runs too.
///
/// Whoever holds it renews it, and ends all it started if it is lost, this command included. This
/// run only looks, at its begin and again and again, whether that holder still is one: it may have
/// ended and left this run behind.
pub(super) struct Around {
    client: Client,
    lock: LockAround,
    /// How long a look is good for.
    every: Duration,
    next_look: Cell<BootInstant>,
    /// The last look did not find the holder.
    missed: Cell<bool>,
}

impl Around {
    /// Makes sure that the holder is one now, and that `wanted` is no more than it has.
    pub(super) async fn enter(
        client: Client,
        lock: LockAround,
        wanted: Mode,
        every: Duration,
    ) -> Result<Self, Failure> {
        let around = Self {
            client,
            lock,
            every,
            next_look: Cell::new(SystemClock.now() + every),
            missed: Cell::new(false),
        };
        let name = around.lock.name();
        let Some(holder) = around.holder().await? else {
            let text = format!("lock {name:?}: {GONE}, with fence {}", around.lock.fence());
            return Err(Failure::new(ExitCode::LOST, text));
        };
        match refusal(holder.mode, wanted) {
            None => Ok(around),
            Some(rule) => Err(Failure::usage(format!(
                "lock {name:?} is held around this command, by {}: {rule}",
                holder_text::phrase(&holder)
            ))),
        }
    }

    pub(super) fn lock(&self) -> &LockAround {
        &self.lock
    }

    /// Resolves with the reason once the holder is none any more. A store that does not answer says
    /// nothing: then the holder keeps its own deadline.
    ///
    /// Cancel safe: the next call goes on where this one was.
    pub(super) async fn lost(&self) -> &'static str {
        loop {
            SystemClock.sleep_until(self.next_look.get()).await;
            let found = self.holder().await;
            let missing = matches!(found, Ok(None));
            // Where servers come and go, too few may name it for a moment.
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

    /// Why the lock is lost, if a last look shows that it is.
    pub(super) async fn last_look(&self) -> Option<&'static str> {
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

/// Why who holds a lock in mode `held` cannot lend it in mode `wanted`, if so.
pub(super) fn refusal(held: Mode, wanted: Mode) -> Option<&'static str> {
    match (held, wanted) {
        (_, Mode::Permit(_)) => Some("--nested gives no permit of a lock that is held already"),
        (Mode::Permit(_), _) => Some("who holds a permit has not the whole lock to lend"),
        (Mode::Shared, Mode::Exclusive) => Some("others may share it, so nobody has it alone (-s)"),
        (Mode::Exclusive, _) | (Mode::Shared, Mode::Shared) => None,
    }
}

const GONE: &str = "the run around this one does not hold it any more";
/// How soon a look is repeated that did not find the holder.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How long a last look may delay the end.
const LAST_LOOK: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::Permits;

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
