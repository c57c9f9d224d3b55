//! How a run keeps its locks when its command ended before `--min-hold`.

use std::fmt;
use std::time::Duration;

use leasehold::GuardSet;
use leasehold::clock::{BootInstant, Clock as _, SystemClock};

use crate::locks::held_locks::{HeldLocks, LostLock, release};
use crate::output::Output;
use crate::output::message::Message;
use crate::runtime::signals::Signals;

/// Until when a run keeps its locks.
pub(crate) struct MinHold<'a> {
    pub(crate) until: BootInstant,
    /// A signal asked the run to end, so it does not stay.
    pub(crate) hurried: bool,
    pub(crate) signals: &'a Signals,
    pub(crate) output: &'a Output,
}

impl MinHold<'_> {
    /// Stays until the time is over, and releases the locks. A signal ends the stay and leaves the locks to their
    /// leases. Returns a lock that was lost while the command ran.
    pub(crate) async fn end(self, hold: HeldLocks) -> Option<LostLock> {
        let guards = match hold {
            HeldLocks::Own(guards) if guards.is_valid() => guards,
            hold => return hold.end(self.output).await,
        };
        let rest = self.until.since(SystemClock.now());
        if rest.is_zero() {
            return release(guards, self.output).await;
        }
        if self.hurried {
            leave(guards);
            return None;
        }
        // Programs such as cron send mail for each line.
        if rest > SHORT || self.output.has_terminal() {
            let rest = humantime::format_duration(Duration::from_secs(rest.as_secs()));
            let text = format!("the command has ended: --min-hold keeps the lock for {rest} more");
            self.output.print_message(&Message::Notice(&text));
        }
        tokio::select! {
            biased;
            lost = guards.lost() => {
                let (key, reason) = lost;
                self.warn(key.as_str(), &reason);
            }
            // If signals can no longer be read, it does not stay either.
            _ = self.signals.ending(self.output) => leave(guards),
            () = SystemClock.sleep_until(self.until) => {
                // A loss after the end of the command did not affect it.
                if let Some(loss) = release(guards, self.output).await {
                    self.warn(&loss.lock, &loss.reason);
                }
            }
        }
        None
    }

    fn warn(&self, lock: &str, why: &dyn fmt::Display) {
        let text = format!("lock {lock:?} is not kept for --min-hold: {why}");
        self.output.print_message(&Message::Warning(&text));
    }
}

/// Without a terminal, a run says nothing about a shorter stay.
const SHORT: Duration = Duration::from_secs(60);

/// Leaves each lock to its lease, which nobody renews. A lock that ends with its process ends now.
fn leave(guards: GuardSet) {
    for guard in guards.into_guards() {
        drop(guard.into_handle());
    }
}
