use std::collections::BTreeSet;
use std::time::Duration;

use leasehold::Mode;

use super::Violation;
use super::company::may_stand_together;
use super::gathering::gathered;
use super::spans::spans;
use super::waits::{Asking, Outcome, askings};
use crate::sim::history::{Event, Manner, What};

/// I8: once nothing is in the way, a lock that somebody waits for without a limit is not left free
/// for longer than it takes until the rest of a lease is over, then a reservation, and then the
/// slowest poll finds it so. Whoever waits is granted, and does not fail.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let instant = |wanted: fn(&What) -> bool| {
        let found = events.iter().find(|event| wanted(&event.what));
        found.map(|event| event.at)
    };
    let Some(calm) = instant(|what| matches!(what, What::Calm)) else {
        return Vec::new();
    };
    let quiet = instant(|what| matches!(what, What::Quiet)).unwrap_or(Duration::MAX);
    let held = held(events);
    let mut violations = Vec::new();
    let askings = askings(events);
    let changes = changes(&held, &askings);
    let patient =
        |it: &&Asking| it.manner == Manner::Patient && it.asked < quiet && it.is_waited_for();
    for asking in askings.iter().filter(patient) {
        if asking.over > calm
            && matches!(asking.outcome, Some(Outcome::Denied(_)))
            && !asking.is_told_of_others()
        {
            violations.push(reject(asking, asking.over, "was refused"));
        }
        let (from, to) = (asking.asked.max(calm), asking.over.min(quiet));
        let is_free = |at| is_free_for(asking, &held, &askings, at);
        if let Some(since) = long_free(&changes, is_free, from, to) {
            let text = format!(
                "waited for a lock that was free from {:.3} on",
                since.as_secs_f64()
            );
            violations.push(reject(asking, since + FREE_MAX, &text));
        }
    }
    violations
}

/// A lock that somebody has: as a guard, or as one lock of a set of which others are waited for.
struct Held {
    key: usize,
    mode: Mode,
    from: Duration,
    to: Duration,
}

fn held(events: &[Event]) -> Vec<Held> {
    let spans = spans(events);
    let guards = spans.iter().flat_map(|it| {
        let downgraded = it
            .downgraded
            .unwrap_or(it.end)
            .clamp(it.granted, it.end.max(it.granted));
        let pieces = [
            (it.mode, it.granted, downgraded),
            (Mode::Shared, downgraded, it.end),
        ];
        let key = it.key;
        pieces.map(|(mode, from, to)| Held {
            key,
            mode,
            from,
            to,
        })
    });
    let of_sets = gathered(events).into_iter().map(|it| Held {
        key: it.key,
        mode: it.mode,
        from: it.from,
        to: it.to,
    });
    guards.chain(of_sets).collect()
}

/// Whether nothing keeps `asking` out: nobody holds the lock, or those who do let others join, and
/// nobody waits whom it must not pass.
fn is_free_for(asking: &Asking, held: &[Held], askings: &[Asking], at: Duration) -> bool {
    let holds = |it: &&Held| it.key == asking.key && it.from <= at && at < it.to;
    let holding: Vec<Mode> = held.iter().filter(holds).map(|it| it.mode).collect();
    let mut others = askings.iter().filter(|it| it.key == asking.key);
    let keeps_out = |it: &Asking| {
        it.asked <= at && at < it.over && !may_stand_together(&[it.mode, asking.mode])
    };
    holding.is_empty()
        || may_stand_together(&[&holding[..], &[asking.mode]].concat()) && !others.any(keeps_out)
}

/// When it may change whether a lock is free, in order.
fn changes(held: &[Held], askings: &[Asking]) -> Vec<Duration> {
    let held = held.iter().flat_map(|it| [it.from, it.to]);
    let wanted = askings.iter().flat_map(|it| [it.asked, it.over]);
    let all: BTreeSet<Duration> = held.chain(wanted).collect();
    all.into_iter().collect()
}

/// Since when the lock is free for too long between these instants.
fn long_free(
    changes: &[Duration],
    is_free: impl Fn(Duration) -> bool,
    from: Duration,
    to: Duration,
) -> Option<Duration> {
    let within = changes.iter().copied().filter(|at| from < *at && *at < to);
    let mut since = None;
    for at in [from].into_iter().chain(within) {
        since = if is_free(at) {
            since.or(Some(at))
        } else {
            None
        };
        let next = changes.iter().find(|next| **next > at);
        let end = next.map_or(to, |next| (*next).min(to));
        if let Some(since) = since.filter(|since| end > *since + FREE_MAX) {
            return Some(since);
        }
    }
    None
}

fn reject(asking: &Asking, at: Duration, what: &str) -> Violation {
    let Asking {
        hold, client, key, ..
    } = asking;
    let text = format!("h{hold} of client {client} for key {key} {what}");
    Violation {
        invariant: "I8",
        at,
        text,
    }
}

/// The longest lease, a reservation, the slowest poll, and what messages take.
const FREE_MAX: Duration = Duration::from_millis(4_000 + 1_000 + 8_000 + 1_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;

    fn calm_waits(rest: &[Event]) -> usize {
        let mut events = vec![event(500, What::Calm)];
        events.extend(waits(1_000, 1, 0, Manner::Patient));
        events.extend_from_slice(rest);
        events.push(event(60_000, What::Quiet));
        check(&events).len()
    }

    #[test]
    fn a_free_lock_that_a_waiter_does_not_get_is_rejected() {
        assert_eq!(calm_waits(&[granted(14_900, 1, 16_000)]), 0);
        assert_eq!(calm_waits(&[granted(15_100, 1, 16_000)]), 1);
        assert_eq!(calm_waits(&[]), 1);
    }

    #[test]
    fn a_waiter_waits_for_those_before_it() {
        let other = grant(2, 1, 0, 9_000, 20_000);
        let late = |millis| [other.clone(), vec![granted(millis, 1, 50_000)]].concat();
        assert_eq!(calm_waits(&late(33_000)), 0);
        assert_eq!(calm_waits(&late(35_000)), 1);
    }

    #[test]
    fn a_reader_waits_for_writers_alone() {
        let after = |mode, writer: Option<Event>| {
            let mut events = vec![event(500, What::Calm)];
            events.extend(in_mode(Mode::Shared, grant(2, 1, 0, 900, 50_000)));
            events.extend(in_mode(mode, waits(1_000, 1, 0, Manner::Patient)));
            if let Some(over) = writer {
                events.push(asked_with(1_000, 3, 2, 0, Manner::Limited));
                events.push(over);
            }
            events.extend([granted(20_000, 1, 21_000), event(60_000, What::Quiet)]);
            check(&events).len()
        };
        let gives_up = |millis| Some(event(millis, What::Cancelled { hold: 3 }));
        assert_eq!(after(Mode::Shared, None), 1);
        assert_eq!(after(Mode::Exclusive, None), 0);
        assert_eq!(after(Mode::Shared, gives_up(6_000)), 0);
        assert_eq!(after(Mode::Shared, gives_up(5_900)), 1);
    }

    #[test]
    fn a_waiter_that_fails_is_rejected() {
        let named = crate::sim::history::Named::NoEffect(leasehold::ErrorKind::NoQuorum);
        let denied = event(2_000, What::Denied { hold: 1, named });
        assert_eq!(calm_waits(&[denied]), 1);
    }
}
