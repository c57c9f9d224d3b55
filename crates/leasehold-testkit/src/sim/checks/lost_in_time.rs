use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Violation;
use super::majorities::Majorities;
use super::spans::{Span, spans};
use crate::sim::execution::Stand;
use crate::sim::history::{Event, Hold, What};

/// I3: a guard says lost from its deadline on and for ever, by itself too, and the deadline lies
/// before the end of the lease on a majority of the servers, by their own clocks.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let spans = spans(events);
    let excused = spans
        .iter()
        .filter(|span| span.excused)
        .map(|span| span.hold);
    let mut watch = Watch {
        excused: excused.collect(),
        spans: spans.iter().map(|span| (span.hold, span)).collect(),
        majorities: Majorities::default(),
        until: BTreeMap::new(),
        lost: BTreeSet::new(),
        stands: BTreeMap::new(),
        disturbed: BTreeMap::new(),
        paused: BTreeMap::new(),
        violations: Vec::new(),
    };
    for event in events {
        watch.see(event);
    }
    watch.violations
}

struct Watch<'a> {
    excused: BTreeSet<Hold>,
    spans: BTreeMap<Hold, &'a Span>,
    majorities: Majorities,
    until: BTreeMap<Hold, Duration>,
    lost: BTreeSet<Hold>,
    stands: BTreeMap<(usize, usize), Vec<Stand>>,
    /// When a server last forgot something, or had its clock moved.
    disturbed: BTreeMap<usize, Duration>,
    /// When a client last stood still; `MAX` while it does.
    paused: BTreeMap<usize, Duration>,
    violations: Vec<Violation>,
}

impl Watch<'_> {
    fn see(&mut self, event: &Event) {
        let at = event.at;
        self.majorities.see(event);
        match &event.what {
            What::Granted { hold, until, .. } | What::Moved { hold, until } => {
                // One that moves into the past can be kept from now on only.
                self.until.insert(*hold, (*until).max(at));
                self.compare_with_servers(at, *hold, *until);
            }
            What::Answered { hold, valid: true } => self.said_valid(at, *hold),
            What::Answered { hold, valid: false } | What::Lost { hold } => {
                self.said_lost(at, *hold);
                self.lost.insert(*hold);
            }
            What::Ended { hold, .. } => self.said_lost(at, *hold),
            What::Paused { client, .. } => {
                self.paused.insert(*client, Duration::MAX);
            }
            What::Woke { client } => {
                self.paused.insert(*client, at);
            }
            What::Executed(execution) => {
                let place = (execution.server, execution.key);
                self.stands.insert(place, execution.after.clone());
            }
            What::Holds {
                server,
                key,
                stands,
            } => {
                self.stands.insert((*server, *key), stands.clone());
            }
            What::Forgot { server } | What::Stepped { server, .. } => {
                self.disturbed.insert(*server, at);
            }
            _ => {}
        }
    }

    fn said_valid(&mut self, at: Duration, hold: Hold) {
        if self.lost.contains(&hold) {
            self.reject(at, format!("h{hold} says valid after it said lost"));
        } else if self.until.get(&hold).is_some_and(|until| at > *until) {
            self.reject(at, format!("h{hold} says valid after its deadline"));
        }
    }

    /// The guard must have said so itself soon after its deadline, unless it could not.
    fn said_lost(&mut self, at: Duration, hold: Hold) {
        let (Some(until), Some(span)) = (self.until.get(&hold), self.spans.get(&hold)) else {
            return;
        };
        if self.excused.contains(&hold) || self.lost.contains(&hold) {
            return;
        }
        let stood = self.paused.get(&span.client).copied().unwrap_or_default();
        let due = (*until).max(span.granted).max(stood);
        if at > due.saturating_add(SOON) {
            self.reject(at, format!("h{hold} did not say by itself that it is lost"));
        }
    }

    fn compare_with_servers(&mut self, at: Duration, hold: Hold, until: Duration) {
        let Some(span) = self.spans.get(&hold) else {
            return;
        };
        if self.excused.contains(&hold) || until <= at {
            return;
        }
        let lasts = |stand: &Stand| stand.owner == span.owner && stand.until >= until;
        let here = self.stands.iter().filter(|((server, key), stands)| {
            let undisturbed = self
                .disturbed
                .get(server)
                .is_none_or(|when| *when < span.asked);
            *key == span.key && undisturbed && stands.iter().any(lasts)
        });
        let disturbed = self.disturbed.values().filter(|when| **when >= span.asked);
        let count = here.count() + disturbed.count();
        if count < self.majorities.of(span.client) {
            let text = format!(
                "h{hold} is valid until {:.3}, but its lease lasts so long on {count} servers only",
                until.as_secs_f64()
            );
            self.reject(at, text);
        }
    }

    fn reject(&mut self, at: Duration, text: String) {
        self.violations.push(Violation {
            invariant: "I3",
            at,
            text,
        });
    }
}

/// A tick of the clock that reads time again, and what scheduling takes.
const SOON: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;

    fn on_majority(until: u64) -> Vec<Event> {
        vec![
            joined(0, 3),
            holds(900, 0, 0, 1, until),
            holds(900, 1, 0, 1, until),
        ]
    }

    #[test]
    fn each_reader_has_a_lease_of_its_own() {
        let until = |second| {
            let both = shared(&[(1, 9_000), (2, second)]);
            let servers = (0..2).map(|server| {
                let (key, stands) = (0, both.clone());
                event(
                    900,
                    What::Holds {
                        server,
                        key,
                        stands,
                    },
                )
            });
            let mut events = vec![joined(0, 3)];
            events.extend(servers);
            events.extend(grant(2, 0, 0, 1_000, 3_000));
            check(&events).len()
        };
        assert_eq!((until(3_000), until(2_999)), (0, 1));
    }

    #[test]
    fn an_answer_after_the_deadline_is_rejected() {
        let held = [on_majority(9_000), grant(1, 0, 0, 1_000, 3_000)].concat();
        let answers = |millis, valid| {
            let answer = event(millis, What::Answered { hold: 1, valid });
            check(&[held.clone(), vec![answer]].concat()).len()
        };
        assert_eq!((answers(2_000, true), answers(3_001, true)), (0, 1));
        assert_eq!(answers(3_100, false), 0);
        let after_lost = vec![
            lost(2_000, 1),
            event(
                2_100,
                What::Answered {
                    hold: 1,
                    valid: true,
                },
            ),
        ];
        assert_eq!(check(&[held, after_lost].concat()).len(), 1);
    }

    #[test]
    fn a_guard_that_waits_to_be_asked_is_rejected() {
        let held = [on_majority(9_000), grant(1, 0, 0, 1_000, 3_000)].concat();
        let silent = [held.clone(), vec![ended(4_000, 1)]].concat();
        assert_eq!(check(&silent).len(), 1);
        let in_time = [held, vec![lost(3_100, 1), ended(4_000, 1)]].concat();
        assert!(check(&in_time).is_empty());
    }

    #[test]
    fn a_deadline_that_moves_into_the_past_is_kept_from_then_on() {
        let held = [on_majority(9_000), grant(1, 0, 0, 1_000, 5_000)].concat();
        let then = |rest: Vec<Event>| {
            let back = vec![moved(3_000, 1, 2_000)];
            check(&[held.clone(), back, rest].concat()).len()
        };
        assert_eq!(then(vec![lost(3_000, 1)]), 0);
        assert_eq!(then(vec![ended(3_400, 1)]), 1);
        let valid = event(
            3_001,
            What::Answered {
                hold: 1,
                valid: true,
            },
        );
        assert_eq!(then(vec![valid]), 1);
    }

    #[test]
    fn a_deadline_beyond_the_leases_is_rejected() {
        let granted = |until| [on_majority(until), grant(1, 0, 0, 1_000, 3_000)].concat();
        assert!(check(&granted(3_000)).is_empty());
        assert_eq!(check(&granted(2_999)).len(), 1);
        let mut of_five = granted(3_000);
        of_five[0] = joined(0, 5);
        assert_eq!(check(&of_five).len(), 1, "two of five are no majority");
    }
}
