use super::*;
use crate::error::ErrorKind;
use crate::permits::{self, Permits};

const THREE: u32 = 3;

/// One who wants a permit of three, with a client of its own.
fn worker(since: u64) -> Person {
    of_number(since, THREE)
}

fn of_number(since: u64, permits: u32) -> Person {
    Person {
        mode: Mode::Permit(Permits::new(permits).unwrap()),
        ..writer(since)
    }
}

/// A lock of three permits, all of which are held, by 1 to 3, while the others wait.
fn full(waiting: &[Person]) -> Bench {
    let mut bench = Bench::new();
    for holder in 1..=3 {
        bench.gets(worker(holder));
    }
    for person in waiting {
        bench.waits(*person);
    }
    bench.heard();
    bench
}

impl Bench {
    /// Which permits are held, by whom, in the order of the leases.
    fn held_slots(&mut self) -> Vec<u32> {
        self.step(|slot, _| {
            let leases = slot.leases.iter();
            leases.map(|it| it.claim.slot.unwrap().get()).collect()
        })
    }

    fn offered(&mut self) -> Vec<(u64, u32)> {
        std::mem::take(&mut self.offered)
    }

    fn refuses(&mut self, person: Person) -> Error {
        self.attempt(person).expect_err("a refusal")
    }

    /// An attempt in turn at this very permit.
    fn ask_for(&mut self, person: Person, number: u32) -> Attempt {
        let claim = person.claim().with_slot(slot(number));
        let turn = Turn::Queued(person.ticket());
        self.step(|slot, step| slot.acquire_in_turn(&claim, turn, step))
            .unwrap()
    }

    fn waits_for(&mut self, person: Person, number: u32) -> Busy {
        busy(self.ask_for(person, number))
    }
}

fn slot(number: u32) -> permits::Slot {
    permits::Slot::new(number, Permits::new(THREE).unwrap()).unwrap()
}

fn free(answer: &Busy) -> Vec<u32> {
    answer.free.iter().map(permits::Slot::get).collect()
}

#[test]
fn as_many_hold_it_as_there_are_permits_each_with_its_own() {
    let mut bench = full(&[]);
    assert_eq!(bench.held_slots(), [0, 1, 2]);
    bench.pass(MOMENT);
    let answer = bench.waits(worker(4));
    assert_eq!((answer.place, free(&answer)), (Some(1), vec![]));
    assert_eq!(answer.remaining, Some(TTL - MOMENT));
    bench.frees(worker(2));
    bench.gets(worker(4));
    assert_eq!(bench.held_slots(), [0, 2, 1]);
}

#[test]
fn a_permit_is_one_owners_and_an_owner_has_one() {
    let mut bench = Bench::new();
    assert!(is_granted(&bench.ask_for(worker(1), 1)));
    for asked in [1, 0, 2] {
        assert!(is_granted(&bench.ask_for(worker(1), asked)), "a resend");
    }
    assert_eq!(bench.held_slots(), [1]);
    let answer = bench.waits_for(worker(2), 1);
    assert_eq!((answer.place, free(&answer)), (Some(1), vec![0, 2]));
    assert!(is_granted(&bench.ask_for(worker(2), 2)));
    assert_eq!((bench.held_slots(), bench.line()), (vec![1, 2], vec![]));
}

#[test]
fn another_number_is_an_error_while_one_is_held_and_queues_nobody() {
    let mut bench = full(&[worker(4)]);
    bench.frees(worker(1));
    for wanted in [1, 2, 4] {
        let error = bench.refuses(of_number(5, wanted));
        assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
        let text = format!("in use with 3 permits, not {wanted}");
        assert!(error.to_string().contains(&text), "{error}");
    }
    assert_eq!(bench.line(), [4]);
    bench.leaves(worker(4));
    for holder in [2, 3] {
        bench.frees(worker(holder));
    }
    bench.gets(of_number(5, 2));
    bench.gets(of_number(6, 2));
    bench.waits(of_number(7, 2));
    bench.refuses(worker(8));
}

#[test]
fn a_permit_that_does_not_exist_is_refused() {
    let mut bench = Bench::new();
    let claim = of_number(1, 2).claim().with_slot(slot(2));
    let error = bench.step(|slot, step| slot.acquire(&claim, step));
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("permit 2 of 2"), "{error}");
}

#[test]
fn other_modes_and_permits_keep_each_other_out() {
    let mut bench = Bench::held(worker(1), &[]);
    for other in [writer(2), reader(3)] {
        let answer = bench.waits(other);
        assert_eq!(answer.holder, Some(worker(1).claim().owner));
        assert!(!is_granted(&bench.barge(other)));
        bench.leaves(other);
    }
    for other in [writer(1), reader(1)] {
        let mut bench = Bench::held(other, &[]);
        assert_eq!(free(&bench.waits(worker(2))), [0; 0]);
        assert!(!is_granted(&bench.barge(worker(3))));
        busy(bench.try_once(worker(4)));
    }
}

#[test]
fn a_permit_that_is_given_back_is_offered_to_the_oldest() {
    let mut bench = full(&[worker(4), worker(5), worker(6)]);
    bench.frees(worker(2));
    assert_eq!(
        bench.heard(),
        [turn(worker(4)), soon(worker(5), RESERVATION)]
    );
    assert_eq!(bench.offered(), [(4, 1)]);
    bench.frees(worker(1));
    assert_eq!(
        bench.heard(),
        [turn(worker(5)), soon(worker(6), RESERVATION)]
    );
    assert_eq!(bench.offered(), [(5, 0)], "the other one is offered to 4");
    let answer = bench.waits(worker(6));
    assert_eq!((answer.place, free(&answer)), (Some(3), vec![]));
    assert_eq!(bench.heard(), [], "nobody is told twice");
    bench.gets(worker(5));
    bench.gets(worker(4));
    assert_eq!((bench.line(), bench.heard()), (vec![6], vec![]));
}

#[test]
fn whoever_asks_for_a_taken_permit_in_its_turn_learns_of_the_free_ones_and_is_expected() {
    let mut bench = full(&[worker(4), worker(5)]);
    bench.frees(worker(3));
    bench.heard();
    let answer = bench.waits_for(worker(4), 0);
    assert_eq!((answer.place, free(&answer)), (Some(1), vec![2]));
    bench.waits(worker(5));
    assert_eq!(bench.heard(), [], "4 knows that it is its turn");
    bench.pass(RESERVATION);
    bench.gets(worker(5));
    assert_eq!(bench.line(), [], "4 did not come");
}

#[test]
fn all_leases_that_end_at_once_let_as_many_in_by_the_first_that_asks() {
    let mut bench = full(&[worker(4), worker(5), worker(6), worker(7)]);
    bench.pass(TTL);
    bench.gets(worker(4));
    assert_eq!(
        bench.heard(),
        [
            turn(worker(5)),
            turn(worker(6)),
            soon(worker(7), RESERVATION)
        ]
    );
    assert_eq!(bench.offered(), [(5, 1), (6, 2)]);
    assert_eq!(free(&bench.waits(worker(7))), [0; 0], "not its turn");
    bench.gets(worker(6));
    bench.gets(worker(5));
    assert_eq!(bench.line(), [7]);
}

#[test]
fn one_lease_that_ends_goes_to_the_head_though_a_younger_one_asks_first() {
    let mut bench = Bench::new();
    bench.gets(worker(1));
    bench.pass(MOMENT);
    bench.gets(worker(2));
    bench.gets(worker(3));
    bench.waits(worker(4));
    bench.waits(worker(5));
    bench.pass(TTL - MOMENT);
    let answer = bench.waits(worker(5));
    assert_eq!(answer.remaining, Some(MOMENT), "the next lease to end");
    assert_eq!(bench.heard(), [turn(worker(4))], "who asks knows");
    bench.gets(worker(4));
}

#[test]
fn who_does_not_hear_or_come_is_passed_over() {
    let sibling = worker(6).of_client(5);
    let mut bench = full(&[worker(4), worker(5), sibling, worker(7)]);
    bench.deaf.insert(4);
    bench.frees(worker(1));
    assert_eq!(
        bench.heard(),
        [turn(worker(5)), soon(worker(7), RESERVATION)]
    );
    assert_eq!(bench.line(), [5, 6, 7]);
    bench.pass(RESERVATION);
    bench.gets(worker(7));
    assert_eq!(bench.line(), []);
    bench.frees(worker(2));
    assert_eq!(bench.waits_for(sibling, 2).place, Some(1));
    bench.gets(sibling);
}

#[test]
fn of_several_offers_the_first_unanswered_one_says_that_a_client_is_late() {
    let (first, second, third) = (
        worker(4).of_client(9),
        worker(5).of_client(9),
        worker(6).of_client(9),
    );
    let mut bench = full(&[first, second, third, worker(7)]);
    bench.frees(worker(1));
    bench.pass(RESERVATION * 9 / 10);
    bench.frees(worker(2));
    bench.pass(RESERVATION / 10);
    bench.gets(worker(7));
    assert_eq!(bench.line(), []);
}

#[test]
fn nobody_overtakes_a_waiter_of_another_mode_that_hears() {
    let mut bench = full(&[worker(4), writer(5), worker(6)]);
    bench.pass(MOMENT);
    bench.frees(worker(1));
    bench.frees(worker(2));
    assert_eq!(
        bench.heard(),
        [
            turn(worker(4)),
            soon(worker(6), RESERVATION),
            at_once(writer(5)),
            soon(worker(6), RESERVATION)
        ]
    );
    bench.gets(worker(4));
    let answer = bench.waits(worker(6));
    assert_eq!((answer.place, free(&answer)), (Some(2), vec![]));
    assert_eq!((answer.holder, answer.remaining), (None, Some(RESERVATION)));
    bench.waits(writer(5));
    assert_eq!(bench.waits(worker(6)).holder, Some(worker(3).claim().owner));
    bench.pass(RESERVATION);
    bench.deaf.insert(5);
    bench.gets(worker(6));
    assert_eq!(bench.line(), []);
}

#[test]
fn a_reader_does_not_overtake_one_that_waits_for_a_permit() {
    let mut bench = Bench::held(reader(1), &[worker(2)]);
    bench.waits(reader(3));
    bench.frees(reader(1));
    bench.gets(worker(2));
    bench.frees(worker(2));
    bench.gets(reader(3));
}

#[test]
fn the_first_permit_has_the_others_offered() {
    let mut bench = Bench::held(
        writer(1),
        &[worker(2), of_number(3, 2), worker(4), worker(5), worker(6)],
    );
    bench.frees(writer(1));
    bench.heard();
    let answer = bench.waits(worker(5));
    assert_eq!((answer.place, free(&answer)), (Some(3), vec![]));
    bench.gets(worker(2));
    assert_eq!(
        bench.heard(),
        [
            turn(of_number(3, 2)),
            turn(worker(4)),
            turn(worker(5)),
            soon(worker(6), RESERVATION)
        ]
    );
    bench.refuses(of_number(3, 2));
    assert_eq!(bench.line(), [4, 5, 6], "it could have none of these");
}

#[test]
fn what_was_offered_to_one_that_leaves_is_offered_to_the_next() {
    let mut bench = full(&[worker(4), worker(5), worker(6)]);
    bench.leaves(worker(4));
    assert_eq!(bench.heard(), [soon(worker(5), TTL), soon(worker(6), TTL)]);
    bench.frees(worker(3));
    bench.heard();
    bench.leaves(worker(5));
    assert_eq!(bench.heard(), [turn(worker(6))]);
    bench.gets(worker(6));
}

#[test]
fn one_whose_attempt_failed_elsewhere_is_offered_it_again() {
    let mut bench = full(&[worker(4)]);
    bench.frees(worker(1));
    bench.gets(worker(4));
    bench.waits(worker(5));
    bench.heard();
    let back = Departure::Requeue(worker(4).ticket());
    assert_eq!(bench.depart(worker(4), &back), Release::Released);
    assert_eq!(
        bench.heard(),
        [turn(worker(4)), soon(worker(5), RESERVATION)]
    );
    assert_eq!(bench.line(), [4, 5]);
}

#[test]
fn the_last_permit_that_is_given_back_hands_the_lock_over() {
    let mut bench = full(&[writer(4), worker(5)]);
    for holder in [1, 2, 3] {
        assert!(!bench.reserved());
        bench.frees(worker(holder));
    }
    assert!(bench.reserved());
    bench.gets(writer(4));
    bench.frees(writer(4));
    assert!(bench.reserved(), "the whole lock is kept for the head");
    assert_eq!(free(&busy(bench.try_once(worker(6)))), [0; 0]);
    bench.gets(worker(5));
}

#[test]
fn a_lock_left_free_for_others_is_not_while_permits_are_held() {
    let mut bench = full(&[worker(4)]);
    bench.depart(worker(1), &Departure::LeaveFree(TTL));
    assert_eq!(bench.heard(), [turn(worker(4))]);
    bench.gets(worker(4));
}

#[test]
fn who_has_no_turn_takes_a_permit_only_while_nobody_waits_and_barging_any() {
    let mut bench = Bench::held(worker(1), &[]);
    assert!(is_granted(&bench.try_once(worker(2))));
    let claim = worker(3).claim().with_slot(slot(0));
    let taken = bench.step(|slot, step| slot.acquire(&claim, step));
    assert_eq!(free(&busy(taken.unwrap())), [2]);
    bench.gets(worker(3));
    bench.waits(worker(4));
    bench.frees(worker(3));
    assert_eq!(free(&busy(bench.try_once(worker(5)))), [0; 0]);
    assert!(is_granted(&bench.barge(worker(6))));
    assert!(!is_granted(&bench.barge(worker(7))));
    assert_eq!(bench.line(), [4]);
    bench.frees(worker(1));
    bench.gets(worker(4));
}
