use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use leasehold::{Mode, RESERVATION};

use super::Violation;
use super::company::{Company, may_stand_together};
use super::died_with::died_with;
use super::gathering::gathered;
use super::queues::Queues;
use super::shows::Shows;
use super::spans::{Span, spans};
use super::waits::{Asking, askings};
use crate::sim::history::{Event, Hold, Manner, What};

/// I8: a lock that is given back while nothing is in the way, and somebody is queued for it on a
/// majority of the servers, is granted again at once, or within the time of a reservation for each
/// client that died: split votes do not last, and nobody sleeps through its turn. So is one that those
/// who hold it share with whoever waits, also right after one of them came in: nobody is forgotten.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let (spans, askings) = (spans(events), askings(events));
    let taken_by_nobody = taken_by_nobody(events);
    let held: BTreeMap<Hold, &Span> = spans.iter().map(|span| (span.hold, span)).collect();
    let mut queues = Queues::default();
    let (mut company, mut shows) = (Company::default(), Shows::default());
    let mut violations = Vec::new();
    for event in events {
        queues.see(event);
        company.see(event, &held);
        shows.see(event);
        let (hold, what) = match event.what {
            What::Ended { hold, .. } => (hold, "gave it back"),
            What::Granted { hold, .. } => (hold, "shares it"),
            What::Downgraded { hold } => (hold, "made it shared"),
            _ => continue,
        };
        let Some(span) = held.get(&hold) else {
            continue;
        };
        let opens = match event.what {
            What::Ended { .. } => span.end == event.at,
            What::Downgraded { .. } => event.at < span.end,
            _ => span.mode != Mode::Exclusive && !span.is_stillborn(),
        };
        if !opens || !queues.is_calm() {
            continue;
        }
        let is_seen = |client, died| {
            let of_key = askings.iter().filter(|it| it.key == span.key);
            let mut theirs = of_key.filter(|it| it.client == client && queues.on_majority(it));
            theirs.any(|it| shows.is_seen(it, died, event.at))
        };
        let late = event.at + free_max(events, event.at, is_seen);
        let next = goes_to(span, event.at..=late, &spans);
        let taken = taken_by_nobody.iter();
        let taken =
            taken.filter(|(key, from, _)| *key == span.key && event.at < *from && *from <= late);
        let granted: Vec<Mode> = next.chain(taken.map(|(.., mode)| *mode)).collect();
        let waits = |it: &&Asking| {
            let open = it.key == span.key && it.is_open(event.at) && it.is_open(late);
            // Readers are in nobody's way who reads.
            let free = granted
                .iter()
                .all(|mode| (*mode, it.mode) == (Mode::Shared, Mode::Shared));
            let is_held = company.stands(span.key, event.at) || !granted.is_empty();
            let open = open && free && company.lets_in(it, event.at);
            open && !(is_held && must_wait(it, &askings, event.at))
        };
        let mut waiting = askings.iter().filter(waits);
        if let Some(first) = waiting.find(|asking| queues.on_majority(asking)) {
            let text = format!(
                "key {} is free, and h{} waits for it still: h{hold} {what} at {:.3}",
                span.key,
                first.hold,
                event.at.as_secs_f64()
            );
            violations.push(Violation {
                invariant: "I8",
                at: late,
                text,
            });
        }
    }
    violations
}

/// The modes in which the lock is granted in that time.
fn goes_to<'a>(
    left: &'a Span,
    time: RangeInclusive<Duration>,
    spans: &'a [Span],
) -> impl Iterator<Item = Mode> + 'a {
    // To the next of its client a lease goes over in no time.
    let inherits = |it: &Span| it.owner == left.owner && it.hold != left.hold;
    let is_next = move |it: &&Span| {
        let in_time = time.contains(&it.granted);
        it.key == left.key && in_time && (*time.start() < it.granted || inherits(it))
    };
    spans.iter().filter(is_next).map(|it| it.mode)
}

/// What is held by a majority of the servers, though nobody has a guard: which key, from when on, and how.
fn taken_by_nobody(events: &[Event]) -> Vec<(usize, Duration, Mode)> {
    let of_sets = gathered(events).into_iter();
    let of_sets = of_sets.map(|it| (it.key, it.from, it.mode));
    let died = died_with(events).into_iter();
    of_sets
        .chain(died.map(|it| (it.key, it.from, it.mode)))
        .collect()
}

/// Whether somebody may be before it who cannot join those who hold the lock, if anybody does: in the
/// queue, or for a moment ahead of it.
fn must_wait(asking: &Asking, askings: &[Asking], at: Duration) -> bool {
    let others = askings.iter().filter(|it| it.key == asking.key);
    let mut open = others.filter(|it| it.asked <= at + AT_ONCE && at < it.over);
    let since = asking.waits_since.unwrap_or(asking.asked);
    let other_mode = |it: &Asking| !may_stand_together(&[it.mode, asking.mode]);
    let is_before = |it: &Asking| match it.manner {
        Manner::Once | Manner::Barging => true,
        Manner::Limited | Manner::Patient => it.asked <= since + CLOCKS_PART,
    };
    open.any(|it| other_mode(it) && is_before(it))
}

/// How long the lock may be free that was given back at `at`. Who shares it and is kept out by one that
/// died, but is taken for one that was seen, has to wait until that one is asked once more.
fn free_max(events: &[Event], at: Duration, is_seen: impl Fn(usize, Duration) -> bool) -> Duration {
    let soon = |event: &&Event| event.at <= at + AT_ONCE;
    // Who died before all was set right is known to be dead.
    let is_cleared = |event: &Event| matches!(event.what, What::Cleared);
    let cleared = events.iter().position(is_cleared).unwrap_or(0);
    let dead = events[cleared..].iter().filter(soon);
    // Its waiters may be told, and heard, until the servers know; then they are passed over.
    let seconds = dead.map(|event| match event.what {
        What::Crashed { client, killed } => {
            let is_known = killed && event.at + NOTICED < at;
            u32::from(!is_known) + u32::from(is_seen(client, event.at))
        }
        _ => 0,
    });
    AT_ONCE + RESERVATION * seconds.sum::<u32>()
}

/// What messages take, a moment for those who poll, and a second attempt.
const AT_ONCE: Duration = Duration::from_millis(500);

/// By so much two clients may take the members' clocks differently, and the clocks themselves part.
const CLOCKS_PART: Duration = Duration::from_millis(200);

/// By then a server knows that a client was killed.
const NOTICED: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;
    use crate::sim::execution::Kind;

    fn given_back(queue: Vec<Event>, then: Vec<Event>) -> usize {
        let events = [
            vec![event(500, What::Calm)],
            grant(1, 0, 0, 1_000, 9_000),
            waits(2_000, 2, 1, Manner::Patient),
            queue,
            vec![ended(3_000, 1)],
            then,
        ];
        check(&events.concat()).len()
    }

    #[test]
    fn a_hand_over_that_takes_long_is_rejected() {
        let queue = queues(2_100, &[2]);
        let next = |millis| vec![granted(millis, 2, 9_000)];
        assert_eq!(given_back(queue.clone(), next(3_500)), 0);
        assert_eq!(given_back(queue.clone(), next(3_501)), 1);
        assert_eq!(given_back(queue, vec![]), 1);
    }

    #[test]
    fn a_lease_that_goes_over_does_so_in_no_time() {
        let behind = waits(2_050, 3, 2, Manner::Patient);
        let queue = [behind, queues(2_100, &[2, 3])].concat();
        let next = granted(3_000, 2, 9_000);
        assert_eq!(given_back(queue.clone(), vec![next]), 1, "it had one");
        assert_eq!(given_back(queue, vec![inherits(3_000, 2, 1)]), 0);
    }

    fn among_readers(mode: Mode, others: Vec<Event>) -> usize {
        let shared_by = |millis, leases: &[(Hold, u64)]| {
            let (key, stands) = (0, shared(leases));
            (0..3)
                .map(|server| {
                    let stands = stands.clone();
                    event(
                        millis,
                        What::Holds {
                            server,
                            key,
                            stands,
                        },
                    )
                })
                .collect::<Vec<_>>()
        };
        let events = [
            vec![event(500, What::Calm)],
            in_mode(Mode::Shared, grant(1, 0, 0, 1_000, 9_000)),
            in_mode(Mode::Shared, grant(5, 2, 0, 1_000, 9_000)),
            shared_by(1_000, &[(1, 9_000), (5, 9_000)]),
            in_mode(mode, waits(2_000, 2, 1, Manner::Patient)),
            queues(2_100, &[2]),
            others,
            vec![event(20_000, What::Quiet)],
        ];
        check(&events.concat()).len()
    }

    #[test]
    fn a_writer_waits_for_the_last_reader() {
        let first = ended(3_000, 1);
        assert_eq!(among_readers(Mode::Exclusive, vec![first.clone()]), 0);
        let both = vec![first, ended(4_000, 5)];
        assert_eq!(among_readers(Mode::Exclusive, both.clone()), 1);
        let next = granted(4_500, 2, 9_000);
        assert_eq!(
            among_readers(Mode::Exclusive, [both, vec![next]].concat()),
            0
        );
    }

    #[test]
    fn a_reader_that_is_forgotten_is_rejected() {
        let first = ended(3_000, 1);
        assert_eq!(among_readers(Mode::Shared, vec![first.clone()]), 1);
        let in_time = vec![first.clone(), granted(3_500, 2, 9_000)];
        assert_eq!(among_readers(Mode::Shared, in_time), 0);
        let writer = asked_with(2_200, 7, 3, 0, Manner::Patient);
        assert_eq!(
            among_readers(Mode::Shared, vec![writer, first.clone()]),
            0,
            "it must not pass the writer"
        );
        let later = asked_with(2_500, 7, 3, 0, Manner::Patient);
        assert_eq!(
            among_readers(Mode::Shared, vec![later, first.clone()]),
            1,
            "the writer came after it"
        );
        let another = in_mode(Mode::Shared, grant(8, 3, 0, 3_200, 9_000));
        let without_it = [vec![first.clone()], another].concat();
        assert_ne!(among_readers(Mode::Shared, without_it), 0, "not it alone");
        let joined = in_mode(Mode::Shared, grant(8, 3, 0, 3_000, 9_000));
        assert_eq!(among_readers(Mode::Shared, joined), 1, "another one came");
    }

    #[test]
    fn readers_that_are_not_let_in_by_a_downgrade_are_rejected() {
        let waiting = |mode, next| {
            let both = (0..3).map(|server| holds(1_000, server, 0, 1, 9_000));
            let events = [
                vec![event(500, What::Calm)],
                grant(1, 0, 0, 1_000, 9_000),
                both.collect(),
                in_mode(mode, waits(2_000, 2, 1, Manner::Patient)),
                queues(2_100, &[2]),
                vec![event(3_000, What::Downgraded { hold: 1 })],
                vec![granted(next, 2, 9_000), event(20_000, What::Quiet)],
            ];
            check(&events.concat()).len()
        };
        assert_eq!(
            (waiting(Mode::Shared, 3_500), waiting(Mode::Shared, 3_501)),
            (0, 1)
        );
        assert_eq!(waiting(Mode::Exclusive, 6_000), 0);
    }

    #[test]
    fn who_found_nobody_to_trust_has_its_place_from_when_it_waited() {
        let passed_over = |writer| {
            let both = (0..3).map(|server| holds(1_000, server, 0, 1, 9_000));
            let asked = vec![joined(1, 3), asked_with(1_100, 2, 1, 0, Manner::Patient)];
            let events = [
                vec![event(500, What::Calm)],
                grant(1, 0, 0, 1_000, 9_000),
                both.collect(),
                in_mode(Mode::Shared, asked),
                vec![asked_with(writer, 7, 3, 0, Manner::Patient)],
                vec![sent(2_400, 1, 2)],
                queues(2_500, &[2]),
                vec![event(3_000, What::Downgraded { hold: 1 })],
                vec![event(20_000, What::Quiet)],
            ];
            check(&events.concat()).len()
        };
        assert_eq!((passed_over(2_600), passed_over(2_601)), (0, 1));
    }

    #[test]
    fn a_client_that_is_gone_costs_one_reservation_until_it_is_known_to_be() {
        let crash = |millis, killed, next| {
            let crash = vec![crashed(millis, 7, killed)];
            given_back(
                [crash, queues(2_100, &[2])].concat(),
                vec![granted(next, 2, 9_000)],
            )
        };
        assert_eq!(crash(1_500, false, 4_500), 0);
        assert_eq!(crash(1_500, false, 4_501), 1);
        assert_eq!(crash(1_500, true, 3_501), 1);
        assert_eq!(crash(2_900, true, 4_500), 0);
    }

    #[test]
    fn a_lock_that_died_with_the_next_client_is_not_free() {
        let dies = |servers: usize| {
            let take = |it| executed(3_100, it, Kind::Acquire, 2, None, Some((2, 9_000)));
            let waiting = waits(2_050, 3, 2, Manner::Patient);
            let behind = [vec![joined(0, 3)], waiting, queues(2_100, &[2, 3])];
            let took = (0..servers).map(take).collect();
            let died = vec![crashed(3_150, 0, false)];
            given_back(behind.concat(), [took, died].concat())
        };
        assert_eq!((dies(1), dies(2)), (1, 0));
    }

    #[test]
    fn who_is_known_to_a_minority_or_gives_up_may_be_missed() {
        let minority = vec![queue(2_100, 0, &[2])];
        assert_eq!(given_back(minority, vec![]), 0);
        let gives_up = vec![event(3_500, What::Cancelled { hold: 2 })];
        assert_eq!(given_back(queues(2_100, &[2]), gives_up), 0);
    }
}
