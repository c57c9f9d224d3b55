use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::{Mode, Owner};

use crate::sim::history::{Event, Hold, Manner, What};

/// One `acquire`, from asking to its outcome.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) hold: Hold,
    pub(super) client: usize,
    pub(super) key: usize,
    pub(super) mode: Mode,
    pub(super) manner: Manner,
    pub(super) asked: Duration,
    /// By what the servers know it, once it waits.
    pub(super) waiter: Option<Owner>,
    /// When it was granted, refused or given up; `MAX` if it never was.
    pub(super) over: Duration,
    pub(super) outcome: Option<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Granted,
    Denied,
    /// The caller cancelled it, or crashed.
    GivenUp,
}

impl Asking {
    /// Whether it was asked for before `at`, and had no outcome until after it.
    pub(super) fn is_open(&self, at: Duration) -> bool {
        self.asked < at && at < self.over
    }

    fn end(&mut self, at: Duration, outcome: Outcome) {
        if self.outcome.is_none() {
            (self.over, self.outcome) = (at, Some(outcome));
        }
    }
}

/// All of them, in the order in which they were asked.
pub(super) fn askings(events: &[Event]) -> Vec<Asking> {
    let mut all = BTreeMap::<Hold, Asking>::new();
    // Of a program that asks several times, the last is meant.
    let mut latest = BTreeMap::new();
    let mut known = BTreeSet::new();
    for Event { at, what } in events {
        let mut end = |hold, outcome| {
            if let Some(asking) = all.get_mut(hold) {
                asking.end(*at, outcome);
            }
        };
        match what {
            What::Granted { hold, .. } => end(hold, Outcome::Granted),
            What::Denied { hold, .. } => end(hold, Outcome::Denied),
            What::Cancelled { hold } => end(hold, Outcome::GivenUp),
            What::Crashed { client, .. } => {
                let theirs = all.values_mut().filter(|asking| asking.client == *client);
                theirs.for_each(|asking| asking.end(*at, Outcome::GivenUp));
            }
            What::Asked {
                hold,
                client,
                key,
                mode,
                ttl,
                manner,
            } => {
                latest.insert((*client, *key, *ttl), *hold);
                let asking = Asking {
                    hold: *hold,
                    client: *client,
                    key: *key,
                    mode: *mode,
                    manner: *manner,
                    asked: *at,
                    waiter: None,
                    over: Duration::MAX,
                    outcome: None,
                };
                all.insert(*hold, asking);
            }
            What::Sent {
                client,
                key,
                ttl,
                waiter: Some(waiter),
                ..
            } if known.insert(*waiter) => {
                let hold = latest.get(&(*client, *key, *ttl));
                if let Some(asking) = hold.and_then(|hold| all.get_mut(hold)) {
                    asking.waiter.get_or_insert(*waiter);
                }
            }
            // Who asks from then on is no program.
            What::Quiet => latest.clear(),
            _ => {}
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by_key(|asking| (asking.asked, asking.hold));
    all
}
