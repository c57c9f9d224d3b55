use super::*;
use crate::claim::Held;
use crate::fence::Fence;

/// Handed over by writer 1 to `first`, before `others`.
fn reserved(first: Person, others: &[Person]) -> Bench {
    let holder = writer(1);
    let mut bench = Bench::held(holder, &[&[first], others].concat());
    bench.frees(holder);
    assert_eq!(bench.heard().first(), Some(&turn(first)));
    bench
}

#[test]
fn a_waiter_stands_where_its_ticket_says_and_learns_what_is_in_its_way() {
    let holder = writer(1);
    let mut bench = Bench::held(holder, &[writer(5), writer(3)]);
    bench.pass(MOMENT);
    let answer = bench.waits(writer(4));
    assert_eq!(answer.place, Some(2));
    assert_eq!(answer.holder, Some(holder.claim().owner));
    assert_eq!(answer.remaining, Some(TTL - MOMENT));
    assert!(!answer.silent);
    assert_eq!(bench.waits(writer(3)).place, Some(1));
    assert_eq!(bench.waits(writer(5)).place, Some(3));
    assert_eq!(bench.line(), [3, 4, 5]);
}

#[test]
fn a_claim_that_holds_is_granted_again() {
    let mut bench = Bench::held(writer(1), &[writer(2)]);
    bench.gets(writer(1));
    assert!(is_granted(&bench.barge(writer(1))));
    assert_eq!(bench.line(), [2]);
}

#[test]
fn what_is_free_goes_to_the_oldest_that_hears() {
    let mut bench = Bench::held(writer(1), &[writer(2), writer(3), writer(4)]);
    bench.deaf.insert(2);
    bench.pass(TTL);
    let answer = bench.waits(writer(4));
    assert_eq!(bench.heard(), [turn(writer(3))], "who asks knows");
    assert_eq!((answer.place, answer.holder), (Some(1), None));
    assert_eq!(answer.remaining, Some(RESERVATION));
    assert_eq!(bench.line(), [3, 4]);
}

#[test]
fn what_is_free_goes_to_whoever_asks_if_nobody_older_hears() {
    let mut bench = Bench::held(writer(1), &[writer(2), writer(3), writer(4)]);
    bench.deaf.extend([2, 3]);
    bench.pass(TTL);
    bench.gets(writer(4));
    assert_eq!((bench.heard(), bench.line()), (vec![], vec![]));

    let mut bench = Bench::held(writer(1), &[writer(3)]);
    bench.pass(TTL);
    bench.gets(writer(2));
    assert_eq!((bench.heard(), bench.line()), (vec![], vec![3]));
}

#[test]
fn a_reservation_is_for_its_waiter() {
    let mut bench = reserved(writer(2), &[writer(3)]);
    assert_eq!(bench.line(), [2, 3]);
    bench.gets(writer(2));
    assert_eq!(bench.line(), [3]);
}

#[test]
fn an_older_ticket_takes_a_reservation_over_and_the_younger_waits_again() {
    let mut bench = reserved(writer(4), &[writer(5)]);
    bench.gets(writer(3));
    assert_eq!(bench.line(), [4, 5]);
    assert_eq!(bench.waits(writer(4)).place, Some(1));
}

#[test]
fn a_younger_ticket_waits_for_what_is_reserved() {
    let mut bench = reserved(writer(2), &[]);
    bench.pass(MOMENT);
    let answer = bench.waits(writer(3));
    assert_eq!((answer.holder, answer.place), (None, Some(1)));
    assert_eq!(answer.remaining, Some(RESERVATION - MOMENT));
    assert_eq!(bench.line(), [2, 3]);
}

#[test]
fn a_reservation_that_lapsed_costs_the_clients_other_waiters_their_places() {
    let sibling = writer(3).of_client(2);
    let mut bench = reserved(writer(2), &[sibling, writer(4)]);
    bench.pass(RESERVATION);
    bench.gets(writer(4));
    assert_eq!(bench.line(), []);
    assert_eq!(bench.waits(sibling).place, Some(1));
}

#[test]
fn what_is_kept_for_one_that_owes_an_answer_lapses_as_soon_as_it_is_late() {
    let mut bench = Bench::held(reader(1), &[writer(2), writer(3)]);
    bench.waits(reader(4));
    assert_eq!(bench.heard(), [at_once(writer(2))]);
    bench.pass(RESERVATION * 9 / 10);
    bench.frees(reader(1));
    assert_eq!(
        bench.heard(),
        [turn(writer(2)), soon(writer(3), RESERVATION / 10)]
    );
    bench.pass(RESERVATION / 10);
    bench.gets(writer(3));
}

#[test]
fn a_late_client_that_asks_has_its_other_waiters_keep_their_places() {
    let sibling = writer(3).of_client(2);
    let mut bench = reserved(writer(2), &[sibling, writer(4)]);
    bench.pass(RESERVATION);
    let asking = writer(5).of_client(2);
    assert_eq!(bench.waits(asking).place, Some(2));
    assert_eq!(bench.line(), [3, 4, 5]);
}

#[test]
fn an_attempt_without_a_turn_takes_nothing_that_is_reserved() {
    let mut bench = reserved(writer(2), &[]);
    bench.pass(MOMENT);
    for person in [writer(9), reader(9)] {
        let answer = busy(bench.try_once(person));
        assert_eq!((answer.holder, answer.place), (None, None));
        assert_eq!(answer.remaining, Some(RESERVATION - MOMENT));
    }
    assert_eq!(bench.line(), [2]);
}

#[test]
fn a_reader_without_a_turn_joins_only_while_nobody_waits() {
    let mut bench = Bench::held(reader(1), &[]);
    assert!(is_granted(&bench.try_once(reader(2))));
    bench.waits(writer(3));
    busy(bench.try_once(reader(4)));
    assert_eq!(bench.line(), [3]);
}

#[test]
fn readers_join_unless_an_older_writer_is_there() {
    let mut bench = Bench::held(reader(1), &[writer(3)]);
    bench.gets(reader(2));
    assert_eq!(bench.heard(), []);
    bench.pass(MOMENT);
    assert_eq!(bench.waits(reader(4)).place, Some(2));
    assert_eq!(bench.heard(), [at_once(writer(3))]);
    bench.deaf.insert(3);
    bench.waits(reader(4));
    bench.waits(writer(3));
    bench.pass(RESERVATION);
    bench.gets(reader(4));
    assert_eq!((bench.heard(), bench.line()), (vec![], vec![]));
}

#[test]
fn a_writer_is_asked_once_a_second_whether_it_is_there_and_readers_learn_when_it_is_late() {
    let mut bench = Bench::held(reader(1), &[writer(2), writer(3).of_client(2), writer(4)]);
    let answer = bench.waits(reader(5));
    assert_eq!((answer.holder, answer.remaining), (None, Some(RESERVATION)));
    bench.pass(MOMENT);
    bench.waits(writer(2));
    let answer = bench.waits(reader(6));
    assert_eq!(answer.remaining, Some(TTL - MOMENT), "it was heard");
    assert_eq!(bench.heard(), [at_once(writer(2))]);
    bench.pass(RESERVATION - MOMENT);
    bench.waits(reader(5));
    bench.pass(MOMENT);
    let answer = bench.waits(reader(6));
    assert_eq!(answer.remaining, Some(RESERVATION - MOMENT));
    bench.pass(RESERVATION - MOMENT);
    bench.waits(reader(6));
    assert_eq!(bench.heard(), [at_once(writer(2)), at_once(writer(4))]);
    assert_eq!(
        bench.line(),
        [4, 5, 6],
        "with it went what else was its client's"
    );
    bench.pass(RESERVATION);
    bench.gets(reader(5));
    assert_eq!(bench.heard(), [turn(reader(6))]);
    assert_eq!(bench.line(), [6]);
}

#[test]
fn the_next_writer_is_asked_to_show_itself_though_another_one_just_was() {
    let another = || {
        let mut bench = Bench::held(reader(1), &[writer(2), writer(3)]);
        bench.waits(reader(4));
        assert_eq!(bench.heard(), [at_once(writer(2))]);
        bench
    };
    let next = [at_once(writer(3)), soon(reader(4), RESERVATION)];

    let mut bench = another();
    bench.frees(reader(1));
    bench.gets(writer(2));
    bench.heard();
    let shared = writer(2).claim().with_mode(Mode::Shared);
    let held = Held {
        claim: Arc::new(shared),
        fence: Fence::MAX,
    };
    bench.step(|slot, step| slot.renew(&held, step));
    assert_eq!(bench.heard(), next, "its lock was made shared");

    let mut bench = another();
    bench.leaves(writer(2));
    let heard = bench.heard();
    assert!(heard.ends_with(&next), "{heard:?}");

    let mut bench = another();
    bench.leaves(writer(3));
    let heard = bench.heard();
    assert!(!heard.contains(&at_once(writer(2))), "{heard:?}");
    bench.waits(reader(4));
    assert_eq!(bench.heard(), [], "who was asked is there still");
}

#[test]
fn readers_between_a_writer_that_is_gone_and_the_next_are_called_whoever_asks() {
    let waiting = [writer(2), reader(3), reader(4), writer(5)];
    let mut bench = Bench::held(reader(1), &waiting);
    bench.pass(RESERVATION);
    bench.waits(reader(6));
    let called = [at_once(writer(5)), turn(reader(3)), turn(reader(4))];
    assert_eq!(bench.heard(), called);
    bench.gets(reader(4));
    bench.gets(reader(3));
    assert_eq!(bench.line(), [5, 6]);
}

#[test]
fn the_first_reader_calls_those_up_to_the_next_writer() {
    let mut bench = Bench::held(
        writer(1),
        &[reader(2), reader(3), reader(4), writer(5), reader(6)],
    );
    bench.frees(writer(1));
    assert_eq!(
        bench.heard(),
        [turn(reader(2)), soon(reader(3), RESERVATION)]
    );
    bench.deaf.insert(3);
    bench.gets(reader(2));
    assert_eq!(
        bench.heard(),
        [
            turn(reader(4)),
            at_once(writer(5)),
            soon(reader(6), RESERVATION)
        ]
    );
    assert_eq!(bench.line(), [4, 5, 6]);
    bench.gets(reader(4));
    assert_eq!(bench.heard(), [], "it is not the first");
    assert_eq!(bench.line(), [5, 6]);
}

#[test]
fn barging_takes_what_is_free_or_reserved_and_queues_nowhere() {
    let mut bench = reserved(writer(2), &[writer(3)]);
    assert!(is_granted(&bench.barge(writer(9))));
    assert_eq!(bench.line(), [2, 3]);
    assert_eq!(busy(bench.barge(writer(8))).place, None);
    assert_eq!(bench.line(), [2, 3]);
    bench.depart(writer(9), &Departure::LeaveFree(TTL));
    assert!(is_granted(&bench.barge(reader(8))));
    assert!(is_granted(&bench.barge(reader(7))), "readers share");
}

#[test]
fn the_queue_is_forgotten_when_nobody_asks_for_long() {
    let mut bench = Bench::held(writer(1), &[writer(2)]);
    bench.pass(TTL / 2);
    bench.waits(writer(3));
    bench.pass(Duration::from_secs(29));
    assert_eq!(bench.line(), [2, 3]);
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.line(), []);
}
