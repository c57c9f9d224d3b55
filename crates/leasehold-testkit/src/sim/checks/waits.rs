use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::{ErrorKind, Mode, Owner};

use super::gathering::gathered;
use crate::sim::history::{Event, Hold, Manner, Named, What};

/// One `acquire`, from asking to its outcome. Of a set each lock is one, and each time that it is waited
/// for: until a majority of the servers holds it.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) hold: Hold,
    pub(super) client: usize,
    pub(super) key: usize,
    pub(super) mode: Mode,
    pub(super) manner: Manner,
    pub(super) of_set: bool,
    pub(super) asked: Duration,
    /// By what the servers know it, once it waits.
    pub(super) waiter: Option<Owner>,
    /// From when on its place in the queues counts: when it first asked as a waiter. Before that its
    /// attempts may have come to nothing as no majority could be trusted yet.
    pub(super) waits_since: Option<Duration>,
    /// When it was granted, refused or given up; `MAX` if it never was.
    pub(super) over: Duration,
    pub(super) outcome: Option<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Granted,
    Denied(Named),
    /// The caller cancelled it, or crashed.
    GivenUp,
}

impl Asking {
    /// Whether it was asked for before `at`, and had no outcome until after it.
    pub(super) fn is_open(&self, at: Duration) -> bool {
        self.asked < at && at < self.over
    }

    /// Whether it is this lock that is waited for: those of a set are, one after the other.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.of_set || self.waiter.is_some()
    }

    /// Whether it was refused as permits of another number are held, as far as it says.
    pub(super) fn is_told_of_others(&self) -> bool {
        let differ = ErrorKind::PermitsDiffer;
        let told = [Named::NoEffect(differ), Named::Unknown(differ)];
        matches!(self.outcome, Some(Outcome::Denied(named)) if told.contains(&named))
    }

    /// The same, waited for anew.
    fn again(&self) -> Self {
        Self {
            waiter: None,
            waits_since: None,
            over: Duration::MAX,
            outcome: None,
            ..self.clone()
        }
    }

    fn end(&mut self, at: Duration, outcome: Outcome) {
        if self.outcome.is_none() {
            (self.over, self.outcome) = (at, Some(outcome));
        }
    }
}

/// All of them, in the order in which they were asked.
pub(super) fn askings(events: &[Event]) -> Vec<Asking> {
    let mut watch = Watch::default();
    let gathered = gathered(events);
    let mut gathered = gathered.iter().peekable();
    for event in events {
        while let Some(had) = gathered.next_if(|had| had.from <= event.at) {
            watch.end(had.hold, had.from, Outcome::Granted);
        }
        watch.see(event);
    }
    let mut all: Vec<_> = watch
        .done
        .into_iter()
        .chain(watch.all.into_values())
        .collect();
    all.sort_by_key(|asking| (asking.asked, asking.hold));
    all
}

#[derive(Default)]
struct Watch {
    all: BTreeMap<Hold, Asking>,
    /// Of a program that asks several times, the last is meant: by client, key and TTL.
    latest: BTreeMap<(usize, usize, Duration), Hold>,
    known: BTreeSet<Owner>,
    attempts: BTreeSet<Owner>,
    /// Waits for locks of sets that were waited for once more.
    done: Vec<Asking>,
}

impl Watch {
    fn see(&mut self, Event { at, what }: &Event) {
        let at = *at;
        match what {
            What::Granted { hold, .. } => self.end(*hold, at, Outcome::Granted),
            What::Denied { hold, named } => self.end(*hold, at, Outcome::Denied(*named)),
            What::Cancelled { hold } => self.end(*hold, at, Outcome::GivenUp),
            What::Crashed { client, .. } => {
                let all = self.all.values_mut();
                let theirs = all.filter(|asking| asking.client == *client);
                theirs.for_each(|asking| asking.end(at, Outcome::GivenUp));
            }
            What::Asked {
                hold,
                client,
                key,
                mode,
                ttl,
                manner,
                set,
                ..
            } => {
                self.latest.insert((*client, *key, *ttl), *hold);
                let asking = Asking {
                    hold: *hold,
                    client: *client,
                    key: *key,
                    mode: *mode,
                    manner: *manner,
                    of_set: set.is_some(),
                    asked: at,
                    waiter: None,
                    waits_since: None,
                    over: Duration::MAX,
                    outcome: None,
                };
                self.all.insert(*hold, asking);
            }
            What::Sent {
                client,
                key,
                ttl,
                owner,
                waiter: Some(waiter),
            } => {
                let is_another = self.attempts.insert(*owner);
                let program = (*client, *key, *ttl);
                if self.known.insert(*waiter) {
                    self.waits(program, *waiter, at);
                } else if is_another {
                    self.goes_on(program, *waiter);
                }
            }
            // Who asks from then on is no program.
            What::Quiet => self.latest.clear(),
            _ => {}
        }
    }

    /// A program sent the first attempt of a wait.
    fn waits(&mut self, program: (usize, usize, Duration), waiter: Owner, at: Duration) {
        let hold = self.latest.get(&program);
        let Some(asking) = hold.and_then(|hold| self.all.get_mut(hold)) else {
            return;
        };
        // What was under way when it was given up may go out still.
        let is_given_up = asking.outcome == Some(Outcome::GivenUp);
        if asking.of_set && !is_given_up {
            let before = asking.waiter.is_some() || asking.outcome.is_some();
            if before {
                let again = asking.again();
                asking.end(at, Outcome::GivenUp);
                self.done.push(std::mem::replace(asking, again));
            }
            asking.asked = at;
        }
        asking.waiter.get_or_insert(waiter);
        asking.waits_since.get_or_insert(at);
    }

    /// A wait that asks once more was not granted the lock that a majority held for it: their answers
    /// did not count.
    fn goes_on(&mut self, program: (usize, usize, Duration), waiter: Owner) {
        let hold = self.latest.get(&program);
        if let Some(asking) = hold.and_then(|hold| self.all.get_mut(hold))
            && asking.of_set
            && asking.waiter == Some(waiter)
            && asking.outcome == Some(Outcome::Granted)
        {
            (asking.over, asking.outcome) = (Duration::MAX, None);
        }
    }

    fn end(&mut self, hold: Hold, at: Duration, outcome: Outcome) {
        if let Some(asking) = self.all.get_mut(&hold) {
            asking.end(at, outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;
    use crate::sim::execution::Kind;

    /// What is asked for on behalf of hold 1, by an attempt of this name and as this waiter.
    fn asks(millis: u64, attempt: Hold, waiter: Hold) -> Event {
        let mut event = sent(millis, 0, attempt);
        let name = sent(millis, 0, waiter);
        if let (What::Sent { waiter, .. }, What::Sent { owner, .. }) = (&mut event.what, name.what)
        {
            *waiter = Some(owner);
        }
        event
    }

    /// When each wait for a lock of a set was over, and how, where `again` is asked at 3 s.
    fn ends(again: Option<Event>) -> Vec<(u128, Option<Outcome>)> {
        let place =
            |millis, server| executed(millis, server, Kind::Acquire, 1, None, Some((1, 9_000)));
        let events = [
            of_a_set(waits(1_000, 1, 0, Manner::Patient)),
            vec![place(1_100, 0), place(1_200, 1)],
            again.into_iter().collect(),
            vec![granted(5_000, 1, 9_000)],
        ];
        let all = askings(&events.concat()).into_iter();
        all.map(|it| (it.over.as_millis(), it.outcome)).collect()
    }

    #[test]
    fn a_lock_of_a_set_is_waited_for_until_a_majority_holds_it() {
        let granted = Some(Outcome::Granted);
        assert_eq!(ends(None), [(1_200, granted)]);
        let anew = asks(3_000, 7, 7);
        assert_eq!(ends(Some(anew)), [(1_200, granted), (5_000, granted)]);
    }

    #[test]
    fn what_goes_out_once_it_was_cancelled_is_no_other_wait() {
        let events = [
            of_a_set(vec![asked_with(1_000, 1, 0, 0, Manner::Patient)]),
            vec![event(1_100, What::Cancelled { hold: 1 }), asks(1_100, 7, 7)],
        ];
        let all = askings(&events.concat());
        let [asking] = &all[..] else {
            panic!("{all:?}");
        };
        assert_eq!(asking.outcome, Some(Outcome::GivenUp));
        assert!(asking.waiter.is_some(), "it is known by its name");
    }

    #[test]
    fn who_asks_again_as_the_same_waiter_was_not_granted_anything() {
        let granted = Some(Outcome::Granted);
        assert_eq!(ends(Some(asks(3_000, 8, 1))), [(5_000, granted)]);
        let held_there_too = asks(3_000, 1, 1);
        assert_eq!(ends(Some(held_there_too)), [(1_200, granted)]);
    }
}
