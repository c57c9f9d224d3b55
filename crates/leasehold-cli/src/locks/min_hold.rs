//! How a lock outlives a command that ended before `--min-hold`.

use std::fmt;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold::store::LeaseTerms;
use leasehold::{ErrorKind, GuardSet};

use crate::locks::held_locks::{HeldLocks, LostLock, release};
use crate::output::Output;
use crate::output::message::Message;
use crate::runtime::signals::Signals;

/// Which locks to keep, and until when.
pub(crate) struct MinHold<'a> {
    pub(crate) until: BootInstant,
    /// The terms of leases that outlive their process; `None` if locks end with it.
    pub(crate) leases: Option<LeaseTerms>,
    /// How long the leases can last unless they are released: nothing shortens a lease.
    pub(crate) lasting: Duration,
    /// A signal asked the run to end, so it no longer stays.
    pub(crate) hurried: bool,
    pub(crate) signals: &'a Signals,
    pub(crate) output: &'a Output,
}

/// What to do with the time that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RestAction {
    /// No time is left: release the locks.
    Free,
    /// Keep them until this much is left.
    Stay(Duration),
    /// Leave them to leases for this time.
    Leave(Duration),
}

impl MinHold<'_> {
    /// Ends the hold now or in time. Returns a lock that was lost while the command ran.
    pub(crate) async fn end(mut self, hold: HeldLocks) -> Option<LostLock> {
        let guards = match hold {
            HeldLocks::Own(guards) if guards.is_valid() => guards,
            hold => return hold.end(self.output).await,
        };
        let mut has_stayed = false;
        loop {
            let rest = self.until.since(SystemClock.now());
            match rest_action(rest, self.leases.as_ref(), self.lasting, self.hurried) {
                RestAction::Free => {
                    let loss = release(guards, self.output).await;
                    if let Some(loss) = loss.as_ref().filter(|_| has_stayed) {
                        self.warn(&loss.lock, &loss.reason);
                    }
                    // A loss after the end of the command did not affect it.
                    return loss.filter(|_| !has_stayed);
                }
                RestAction::Leave(span) => return self.leave(guards, span, has_stayed).await,
                RestAction::Stay(until_left) => {
                    has_stayed = true;
                    let at = SystemClock.now() + rest.saturating_sub(until_left);
                    // Programs such as cron send mail for each line: no notice of a stay shorter than the TTL.
                    let is_short = self.leases.is_some() && until_left.is_zero();
                    if rest > BRIEF && (!is_short || self.output.has_terminal()) {
                        let rest = humantime::format_duration(Duration::from_secs(rest.as_secs()));
                        let text = format!(
                            "the command has ended: --min-hold keeps the lock for {rest} more"
                        );
                        self.output.print_message(&Message::Notice(&text));
                    }
                    tokio::select! {
                        biased;
                        lost = guards.lost() => {
                            let (key, reason) = lost;
                            self.warn(key.as_str(), &reason);
                            return None;
                        }
                        // If signals can no longer be read, it does not stay either.
                        _ = self.signals.ending(self.output) => self.hurried = true,
                        () = SystemClock.sleep_until(at) => {}
                    }
                }
            }
        }
    }

    /// Leaves the locks to leases. Returns a lock that the store no longer had when the command ended.
    async fn leave(&self, guards: GuardSet, span: Duration, has_stayed: bool) -> Option<LostLock> {
        let deadline = guards.deadline();
        let mut gone = None;
        for (key, left) in guards.leave_for(span).await {
            let Err(error) = left else { continue };
            // Before the deadline, only the store can have reported a loss.
            let is_ahead = deadline.is_some_and(|end| SystemClock.now() < end);
            if error.kind() == ErrorKind::Lost && is_ahead && !has_stayed {
                gone = gone.or(Some(LostLock {
                    lock: key.to_string(),
                    reason: error.reason().trim_start_matches("lost: ").to_owned(),
                    broken: false,
                }));
            } else {
                self.warn(key.as_str(), &error);
            }
        }
        gone
    }

    fn warn(&self, lock: &str, why: &dyn fmt::Display) {
        let text = format!("lock {lock:?} is not kept for --min-hold: {why}");
        self.output.print_message(&Message::Warning(&text));
    }
}

fn rest_action(
    rest: Duration,
    leases: Option<&LeaseTerms>,
    lasting: Duration,
    hurried: bool,
) -> RestAction {
    let Some(terms) = leases else {
        return match rest.is_zero() || hurried {
            true => RestAction::Free,
            false => RestAction::Stay(Duration::ZERO),
        };
    };
    let ttl = terms.ttl_max.min(LEFT_MAX);
    let longest = ttl.saturating_sub(terms.margin(ttl));
    match rest {
        Duration::ZERO => RestAction::Free,
        _ if hurried => RestAction::Leave(rest.min(longest)),
        // A lease that is left behind would keep others out for much longer than that.
        _ if rest <= BRIEF || terms.ttl_for(rest) + BRIEF < lasting => {
            RestAction::Stay(Duration::ZERO)
        }
        _ if rest <= longest => RestAction::Leave(rest),
        _ => RestAction::Stay(longest),
    }
}

/// The longest TTL of a lease that is left behind. Only an operator can end it.
const LEFT_MAX: Duration = LeaseTerms::QUORUM_TTL_MAX;

/// For a shorter time, it is better to stay than to leave a lease behind.
const BRIEF: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use leasehold::{Client, MemoryStore};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn loss_at_command_end_is_reported() {
        let blocked = Signals::block().map_err(|failure| failure.to_string());
        crate::runtime::runtime().unwrap().block_on(async {
            let client = Client::new(MemoryStore::new());
            let guards = client.lock_all(["x"]).acquire().await.unwrap();
            guards.give_up();
            let signals = Signals::new(blocked.unwrap()).map_err(|failure| failure.to_string());
            let min_hold = MinHold {
                until: SystemClock.now() + 50 * SECOND,
                leases: Some(LeaseTerms::single()),
                lasting: 30 * SECOND,
                hurried: false,
                signals: &signals.unwrap(),
                output: &Output::new(false),
            };
            let loss = min_hold.end(HeldLocks::Own(guards)).await;
            assert_eq!(loss.expect("a loss").lock, "x");
        });
    }

    #[test]
    fn lease_bridges_the_rest_after_a_stay() {
        let terms = LeaseTerms::single();
        let rest_action = |rest| rest_action(rest, Some(&terms), 30 * SECOND, false);
        assert_eq!(rest_action(Duration::ZERO), RestAction::Free);
        assert_eq!(rest_action(BRIEF), RestAction::Stay(Duration::ZERO));
        assert_eq!(rest_action(50 * SECOND), RestAction::Leave(50 * SECOND));
        let RestAction::Stay(left) = rest_action(600 * SECOND) else {
            panic!("no lease is that long");
        };
        assert!(terms.ttl_for(left) <= terms.ttl_max);
        assert_eq!(rest_action(left), RestAction::Leave(left));
        assert!(left > 53 * SECOND);
    }

    #[test]
    fn lease_longer_than_the_rest_is_not_left() {
        let terms = LeaseTerms::single();
        let rest_action = |rest, lasting| rest_action(rest, Some(&terms), lasting, false);
        let stay = RestAction::Stay(Duration::ZERO);
        assert_eq!(rest_action(5 * SECOND, 30 * SECOND), stay);
        assert_eq!(
            rest_action(27 * SECOND, 30 * SECOND),
            RestAction::Leave(27 * SECOND)
        );
        // A lock delay is part of the lease.
        assert_eq!(rest_action(27 * SECOND, 40 * SECOND), stay);
        assert_eq!(
            rest_action(5 * SECOND, 6 * SECOND),
            RestAction::Leave(5 * SECOND)
        );
    }

    #[test]
    fn hurried_run_leaves_the_longest_lease() {
        let terms = LeaseTerms::single();
        let rest_action = |rest| rest_action(rest, Some(&terms), 30 * SECOND, true);
        assert_eq!(rest_action(SECOND / 2), RestAction::Leave(SECOND / 2));
        let RestAction::Leave(left) = rest_action(600 * SECOND) else {
            panic!("asked to end");
        };
        assert!(terms.ttl_for(left) <= terms.ttl_max);
    }

    #[test]
    fn where_locks_end_with_their_process_it_stays() {
        assert_eq!(
            rest_action(600 * SECOND, None, Duration::ZERO, false),
            RestAction::Stay(Duration::ZERO)
        );
        assert_eq!(
            rest_action(Duration::ZERO, None, Duration::ZERO, false),
            RestAction::Free
        );
        assert_eq!(
            rest_action(600 * SECOND, None, Duration::ZERO, true),
            RestAction::Free
        );
    }
}
