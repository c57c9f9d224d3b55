use super::*;
use crate::attempt::{LostReason, Renewal};
use crate::claim::Held;
use crate::fence::Fence;

#[test]
fn a_release_hands_over_to_the_first_that_hears() {
    let mut bench = Bench::held(writer(1), &[writer(2), writer(3), writer(4), writer(5)]);
    bench.deaf.extend([2, 4]);
    bench.frees(writer(1));
    assert_eq!(
        bench.heard(),
        [turn(writer(3)), soon(writer(5), RESERVATION)]
    );
    assert_eq!(bench.line(), [3, 5], "who does not hear is dropped");
}

#[test]
fn the_next_is_one_of_another_client() {
    let sibling = writer(3).of_client(2);
    let mut bench = Bench::held(writer(1), &[writer(2), sibling, writer(4), writer(5)]);
    bench.frees(writer(1));
    assert_eq!(
        bench.heard(),
        [turn(writer(2)), soon(writer(4), RESERVATION)]
    );
}

#[test]
fn nobody_waits_and_the_lock_stays_free() {
    let mut bench = Bench::held(writer(1), &[]);
    bench.frees(writer(1));
    assert!(!bench.reserved());
    assert!(is_granted(&bench.try_once(writer(2))));
}

#[test]
fn a_release_of_what_does_not_hold_hands_nothing_over() {
    let mut bench = Bench::held(writer(1), &[writer(2)]);
    bench.pass(TTL);
    let departures = [Departure::HandOver, Departure::LeaveFree(MOMENT)];
    for departure in departures {
        assert_eq!(bench.depart(writer(1), &departure), Release::WasLost);
    }
    assert!(!bench.reserved() && !bench.slot.queue.has_gap());
    assert_eq!((bench.heard(), bench.line()), (vec![], vec![2]));
}

#[test]
fn the_last_reader_hands_over() {
    let mut bench = Bench::held(reader(1), &[]);
    bench.gets(reader(2));
    bench.waits(writer(3));
    bench.frees(reader(1));
    assert_eq!(bench.heard(), []);
    bench.frees(reader(2));
    assert_eq!(bench.heard(), [turn(writer(3))]);
}

#[test]
fn a_lock_that_is_left_free_is_for_those_who_poll() {
    let mut bench = Bench::held(writer(1), &[writer(2), writer(3), writer(4)]);
    bench.deaf.insert(2);
    bench.depart(writer(1), &Departure::LeaveFree(MOMENT));
    assert_eq!(bench.heard(), [soon(writer(3), MOMENT)]);
    assert_eq!(bench.line(), [3, 4]);
    let answer = bench.waits(writer(3));
    assert_eq!((answer.remaining, answer.place), (Some(MOMENT), Some(1)));
    assert!(
        is_granted(&bench.try_once(writer(9))),
        "a gap stops only those in turn"
    );
    assert_eq!(bench.waits(writer(3)).remaining, Some(TTL));
    bench.pass(MOMENT / 2);
    bench.frees(writer(9));
    assert!(!bench.reserved(), "nothing is handed over in a gap");
    let rest = MOMENT / 2;
    assert_eq!(
        bench.heard(),
        [soon(writer(3), rest), soon(writer(4), rest)]
    );
    bench.pass(rest);
    bench.gets(writer(3));
}

#[test]
fn a_reader_that_comes_first_in_a_gap_calls_those_who_wait() {
    let mut bench = Bench::held(writer(1), &[reader(2), writer(3), reader(4)]);
    bench.depart(writer(1), &Departure::LeaveFree(MOMENT));
    bench.heard();
    assert!(is_granted(&bench.try_once(reader(9))));
    assert_eq!(
        bench.heard(),
        [
            turn(reader(2)),
            at_once(writer(3)),
            soon(reader(4), RESERVATION)
        ]
    );
    bench.gets(reader(2));
}

#[test]
fn a_failed_attempt_puts_its_waiter_back_whether_or_not_it_held() {
    let mut bench = Bench::held(writer(2), &[writer(3)]);
    let back = Departure::Requeue(writer(2).ticket());
    assert_eq!(bench.depart(writer(2), &back), Release::Released);
    assert_eq!(
        bench.heard(),
        [turn(writer(2)), soon(writer(3), RESERVATION)]
    );
    assert_eq!(bench.line(), [2, 3]);

    let mut bench = Bench::held(writer(1), &[writer(3)]);
    assert_eq!(bench.depart(writer(2), &back), Release::WasLost);
    assert_eq!((bench.heard(), bench.line()), (vec![], vec![2, 3]));
    bench.pass(TTL);
    assert_eq!(bench.depart(writer(2), &back), Release::WasLost);
    assert!(bench.reserved(), "what was simply free is handed over, too");
    assert_eq!(
        bench.heard(),
        [turn(writer(2)), soon(writer(3), RESERVATION)]
    );
    assert_eq!(bench.depart(writer(2), &back), Release::WasLost);
    assert_eq!(bench.line(), [2, 3], "reserved, and not queued beside it");
}

#[test]
fn whoever_leaves_passes_on_what_is_reserved_for_it() {
    let mut bench = Bench::held(writer(1), &[writer(2), writer(3), writer(4)]);
    bench.frees(writer(1));
    bench.heard();
    bench.leaves(writer(2));
    assert_eq!(
        bench.heard(),
        [turn(writer(3)), soon(writer(4), RESERVATION)]
    );
    assert_eq!(bench.line(), [3, 4]);
}

#[test]
fn those_who_move_to_the_front_are_told_when_it_is_worth_trying() {
    let mut bench = Bench::held(writer(1), &[writer(2), writer(3), writer(4), writer(5)]);
    bench.pass(MOMENT);
    let rest = TTL - MOMENT;
    bench.leaves(writer(4));
    assert_eq!(bench.heard(), []);
    bench.leaves(writer(3));
    assert_eq!(
        bench.heard(),
        [soon(writer(2), rest), soon(writer(5), rest)]
    );
    bench.leaves(writer(2));
    assert_eq!(bench.heard(), [soon(writer(5), rest)]);
    bench.leaves(writer(9));
    assert_eq!((bench.heard(), bench.line()), (vec![], vec![5]));
}

#[test]
fn readers_are_called_when_the_writer_leaves_that_kept_them_out() {
    let waiting = [writer(2), reader(3), reader(4), writer(5), reader(6)];
    let mut bench = Bench::held(reader(1), &waiting);
    bench.heard();
    bench.leaves(writer(5));
    bench.leaves(reader(6));
    let called = |bench: &mut Bench| {
        let mut heard = bench.heard();
        heard.retain(|(_, word)| *word == Word::YourTurn);
        heard
    };
    assert_eq!(called(&mut bench), [], "the first writer is still there");
    bench.waits(writer(7));
    bench.leaves(writer(2));
    assert_eq!(called(&mut bench), [turn(reader(3)), turn(reader(4))]);
    bench.gets(reader(4));
    bench.gets(reader(3));
}

#[test]
fn a_late_client_that_leaves_has_its_other_waiters_keep_their_places() {
    let sibling = writer(3).of_client(2);
    let mut bench = Bench::held(writer(1), &[writer(2), sibling, writer(4)]);
    bench.frees(writer(1));
    bench.pass(RESERVATION);
    bench.heard();
    // It lives; and nobody else was told that the lock is free.
    bench.leaves(writer(2));
    assert_eq!(bench.heard(), [turn(sibling), soon(writer(4), RESERVATION)]);
}

#[test]
fn a_reservation_and_a_gap_are_no_lease_and_nothing_is_put_back_over_them() {
    let handed = Departure::HandOver;
    for departure in [handed, Departure::LeaveFree(RESERVATION)] {
        let mut bench = Bench::held(writer(1), &[writer(2)]);
        bench.depart(writer(1), &departure);
        let held = Held {
            claim: Arc::new(writer(1).claim()),
            fence: Fence::new(7).unwrap(),
        };
        let renewal = bench.step(|slot, step| slot.renew(&held, step));
        assert!(matches!(renewal, Renewal::Lost(LostReason::Gone)));
        bench.step(|slot, step| slot.heal(&held, step.now));
        assert!(bench.slot.leases.is_empty());
        bench.pass(RESERVATION);
        bench.step(|slot, step| slot.heal(&held, step.now));
        assert_eq!(bench.slot.leases.len(), 1);
    }
}
