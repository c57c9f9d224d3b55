//! How a run keeps its locks when its command ended before `--min-hold`.

use std::fmt;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};

use crate::locks::held_locks::HeldLocks;
use crate::locks::release::{Released, Releasing};
use crate::output::message::Message;
use crate::runtime::signals::Signals;

/// Until when a run keeps its locks.
pub(crate) struct MinHold<'a> {
    pub(crate) until: BootInstant,
    /// A signal asked the run to end, so it does not stay.
    pub(crate) skip_wait: bool,
    /// Whether the locks can outlast this process.
    pub(crate) has_leases: bool,
    pub(crate) signals: &'a Signals,
}

impl MinHold<'_> {
    /// Stays until the time is over, and releases the locks. A signal ends the stay and leaves the locks to their
    /// leases, if they have any. Of the lost locks, reports only those that were lost while the command ran.
    pub(crate) async fn end(self, hold: HeldLocks, releasing: &Releasing<'_>) -> Released {
        let guards = match hold {
            HeldLocks::Own(guards) if guards.is_valid() => guards,
            hold => return hold.end(releasing).await,
        };
        let rest = self.until.since(SystemClock.now());
        if rest.is_zero() {
            return releasing.release(guards.into_guards()).await;
        }
        let mut is_cut_short = true;
        if !self.skip_wait {
            self.print_stay(rest, releasing);
            tokio::select! {
                biased;
                lost = guards.lost() => {
                    let (key, reason) = lost;
                    warn(releasing, key.as_str(), &reason);
                    return Released::default();
                }
                // If signals can no longer be read, it does not stay either.
                _ = self.signals.ending(releasing.output) => {}
                () = SystemClock.sleep_until(self.until) => is_cut_short = false,
            }
        }
        if is_cut_short && self.has_leases {
            return releasing.leave(guards.into_guards(), CUT_SHORT);
        }
        let mut released = releasing.release(guards.into_guards()).await;
        if let Some(loss) = released.lost.take() {
            // It happened after the end of the command, and did not affect it.
            warn(releasing, &loss.lock, &loss.reason);
            released.is_complete = false;
        }
        released
    }

    fn print_stay(&self, rest: Duration, releasing: &Releasing<'_>) {
        // Programs such as cron send mail for each line.
        if rest > SHORT || releasing.output.has_terminal() {
            let rest = humantime::format_duration(Duration::from_secs(rest.as_secs()));
            let text = format!("the command has ended: --min-hold keeps the lock for {rest} more");
            releasing.output.print_message(&Message::Notice(&text));
        }
    }
}

fn warn(releasing: &Releasing<'_>, lock: &str, why: &dyn fmt::Display) {
    let text = format!("lock {lock:?} is not kept for --min-hold: {why}");
    releasing.output.print_message(&Message::Warning(&text));
}

/// Without a terminal, a run says nothing about a shorter stay.
const SHORT: Duration = Duration::from_secs(60);
const CUT_SHORT: &str = "a signal ended the wait for --min-hold";
