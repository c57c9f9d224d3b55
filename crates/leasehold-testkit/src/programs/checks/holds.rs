use std::collections::BTreeMap;
use std::fmt;

use crate::programs::history::{Event, HeldMode, HoldNumber, What};
use crate::programs::operation::{LOCKS, LockIndex, Manner};

/// One call that asked for a lock, and the guard that came of it.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) client: usize,
    pub(super) number: HoldNumber,
    pub(super) lock: LockIndex,
    pub(super) mode: HeldMode,
    pub(super) asked: u64,
    pub(super) is_queued: bool,
    pub(super) wait: Option<u64>,
    /// The time and the fence of the grant.
    pub(super) granted: Option<(u64, u64)>,
    pub(super) is_adopted: bool,
    /// The time at which the call ended.
    pub(super) answered: Option<u64>,
    /// The last time at which the guard was valid.
    pub(super) valid_until: Option<u64>,
    /// The deadline that the guard had then.
    pub(super) deadline: Option<u64>,
    pub(super) downgraded: Option<u64>,
    pub(super) lost: Option<(u64, String)>,
    /// What else the guard said that no guard may say.
    pub(super) oddity: Option<String>,
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lock = LOCKS[usize::from(self.lock)];
        write!(
            f,
            "c{} h{} ({:?} {lock}",
            self.client, self.number, self.mode
        )?;
        if let Some((_, fence)) = self.granted {
            write!(f, ", fence {fence}")?;
        }
        f.write_str(")")
    }
}

/// A lease that an operator breaks at once: its holder learns it later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Break {
    pub(super) at: u64,
    pub(super) lock: LockIndex,
    pub(super) at_once: bool,
}

/// Returns the holds of a history.
pub(super) fn of(events: &[Event]) -> Vec<Hold> {
    let mut holds: BTreeMap<(usize, HoldNumber), Hold> = BTreeMap::new();
    for Event { at, client, what } in events {
        let at = *at;
        let began = match what {
            What::Asked {
                hold,
                lock,
                mode,
                manner,
                is_queued,
            } => {
                let wait = match manner {
                    Manner::Try => None,
                    Manner::Wait(wait) | Manner::Barge(wait) => Some(u64::from(*wait) * 1_000_000),
                };
                Some((*hold, *lock, *mode, *is_queued, wait, None))
            }
            What::Adopted {
                hold,
                lock,
                mode,
                fence,
            } => Some((*hold, *lock, *mode, false, None, Some((at, *fence)))),
            _ => None,
        };
        if let Some((number, lock, mode, is_queued, wait, granted)) = began {
            let hold = Hold {
                client: *client,
                number,
                lock,
                mode,
                asked: at,
                is_queued,
                wait,
                granted,
                is_adopted: granted.is_some(),
                answered: granted.map(|(at, _)| at),
                valid_until: None,
                deadline: None,
                downgraded: None,
                lost: None,
                oddity: None,
            };
            holds.insert((*client, number), hold);
            continue;
        }
        if let Some(number) = number_of(what)
            && let Some(hold) = holds.get_mut(&(*client, number))
        {
            hold.take(at, what);
        }
    }
    holds.into_values().collect()
}

/// The breaks of a history.
pub(super) fn breaks(events: &[Event]) -> Vec<Break> {
    let broken = events.iter().filter_map(|event| match event.what {
        What::Breaking { lock, at_once, .. } => Some(Break {
            at: event.at,
            lock,
            at_once,
        }),
        _ => None,
    });
    broken.collect()
}

fn number_of(what: &What) -> Option<HoldNumber> {
    match what {
        What::Granted { hold, .. }
        | What::Refused { hold, .. }
        | What::Cancelled { hold }
        | What::Valid { hold, .. }
        | What::Lost { hold, .. }
        | What::Downgrading { hold } => Some(*hold),
        _ => None,
    }
}

impl Hold {
    /// Returns when the guard was valid for the last time before a break. Its holder learns later of the break.
    pub(super) fn valid_before_break<'a>(
        &self,
        breaks: impl Iterator<Item = &'a Break>,
    ) -> Option<u64> {
        let of_lease = breaks.filter(|broken| broken.lock == self.lock && broken.at >= self.asked);
        let broken = of_lease.map(|broken| broken.at).min();
        let valid = self.valid_until?;
        Some(broken.map_or(valid, |broken| valid.min(broken)))
    }

    fn take(&mut self, at: u64, what: &What) {
        match what {
            What::Granted { fence, .. } => {
                self.granted = Some((at, *fence));
                self.answered = Some(at);
            }
            What::Refused { .. } | What::Cancelled { .. } => self.answered = Some(at),
            What::Valid { until, .. } => {
                if let Some((lost, _)) = self.lost
                    && lost < at
                {
                    self.oddity = Some("is valid again after its loss".into());
                }
                if until.is_some_and(|until| until < at) {
                    self.oddity = Some("is valid after its deadline".into());
                }
                self.valid_until = Some(at);
                self.deadline = *until;
            }
            What::Lost { reason, .. } => self.lost = Some((at, reason.clone())),
            What::Downgrading { .. } => self.downgraded = Some(at),
            _ => {}
        }
    }
}
