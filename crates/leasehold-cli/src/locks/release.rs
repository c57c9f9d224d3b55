//! How a run releases its locks at its end, and what it says if the store does not answer.

use std::time::Duration;

use futures_util::future::join_all;
use leasehold::clock::{Clock as _, SystemClock, WallTime, within};
use leasehold::{Guard, LostReason, ReleaseOutcome};

use crate::locks::lost_lock::LostLock;
use crate::options::lock_options::LockOptions;
use crate::output::Output;
use crate::output::message::Message;
use crate::output::time_text::millis;

/// What is known about the locks after their release.
#[derive(Default)]
pub(crate) struct Released {
    /// A lock that was no longer held.
    pub(crate) lost: Option<LostLock>,
    /// Whether the store answered that it released every lock. False if another guard or an outer run still holds one.
    pub(crate) is_complete: bool,
}

/// Releases locks, and reports those that may stay held.
pub(crate) struct Releasing<'a> {
    pub(crate) lock_options: &'a LockOptions,
    pub(crate) output: &'a Output,
}

impl Releasing<'_> {
    /// Releases the locks. A store that does not answer delays the end only briefly: the releases continue in the
    /// background, and otherwise the leases expire.
    pub(crate) async fn release(&self, guards: impl IntoIterator<Item = Guard>) -> Released {
        let mut released = Released {
            lost: None,
            is_complete: true,
        };
        let limit = SystemClock.now() + RELEASE_LIMIT;
        let releases = guards.into_iter().map(|guard| async move {
            let (key, left) = (guard.key().clone(), guard.remaining());
            let outcome = within(&SystemClock, limit, guard.release()).await;
            (key, left, outcome)
        });
        for (key, left, outcome) in join_all(releases).await {
            let why = match outcome {
                Some(Ok(ReleaseOutcome::Released)) => continue,
                Some(Ok(ReleaseOutcome::WasLost)) => {
                    let loss = LostLock::of((key, LostReason::Gone));
                    released.lost = released.lost.or(Some(loss));
                    continue;
                }
                Some(Ok(_)) => None,
                Some(Err(error)) => Some(error.to_string()),
                None => Some(UNANSWERED.to_owned()),
            };
            released.is_complete = false;
            if let Some(why) = why {
                self.report(key.as_str(), left, &why);
            }
        }
        released
    }

    /// Renews the leases of the locks no longer.
    pub(crate) fn leave(&self, guards: impl IntoIterator<Item = Guard>, why: &str) -> Released {
        for guard in guards {
            let (key, left) = (guard.key().clone(), guard.remaining());
            drop(guard.into_handle());
            self.report(key.as_str(), left, why);
        }
        Released::default()
    }

    /// Warns that a lock may stay held. Its lease ends a TTL after its last renewal, which may be a moment ago.
    pub(super) fn report(&self, lock: &str, left: Duration, why: &str) {
        let delay = self.lock_options.lock_delay.unwrap_or_default();
        let longest = left.max(self.lock_options.longest_ttl()) + delay;
        let until = SystemClock.wall().as_micros() + millis(longest) * 1_000;
        self.output.print_message(&Message::StillHeld {
            lock,
            until: WallTime::from_micros(until),
            reason: why,
        });
    }
}

/// How long the end of the program waits for the releases.
const RELEASE_LIMIT: Duration = Duration::from_secs(3);
pub(crate) const UNANSWERED: &str = "the store does not answer";
