use std::time::Duration;

use super::Violation;
use super::spans::{Span, spans};
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
    let spans = spans(events);
    let mut violations = Vec::new();
    let askings = askings(events).into_iter();
    for asking in askings.filter(|it| it.manner == Manner::Patient && it.asked < quiet) {
        if asking.over > calm && asking.outcome == Some(Outcome::Denied) {
            violations.push(reject(&asking, asking.over, "was refused"));
        }
        let (from, to) = (asking.asked.max(calm), asking.over.min(quiet));
        if let Some(since) = long_free(&spans, asking.key, from, to) {
            let text = format!(
                "waited for a lock that was free from {:.3} on",
                since.as_secs_f64()
            );
            violations.push(reject(&asking, since + FREE_MAX, &text));
        }
    }
    violations
}

/// Since when nobody holds the key for too long between these instants.
fn long_free(spans: &[Span], key: usize, from: Duration, to: Duration) -> Option<Duration> {
    let mut since = from;
    for span in spans.iter().filter(|span| span.key == key) {
        if span.granted.min(to) > since + FREE_MAX {
            return Some(since);
        }
        since = since.max(span.end);
    }
    (to > since + FREE_MAX).then_some(since)
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
    fn a_waiter_that_fails_is_rejected() {
        let named = crate::sim::history::Named::NoEffect(leasehold::ErrorKind::NoQuorum);
        let denied = event(2_000, What::Denied { hold: 1, named });
        assert_eq!(calm_waits(&[denied]), 1);
    }
}
