use std::time::Duration;

use super::due::FLOOR_NEAR;
use super::*;
use crate::ambient::SystemEntropy;
use crate::owner::{ClientId, Owner};
use crate::permits::{Permits, Slot};

fn at(millis: u64) -> BootInstant {
    BootInstant::from_nanos(millis * 1_000_000)
}

fn soon(millis: u64) -> Option<BootInstant> {
    Some(at(millis))
}

fn owner() -> Owner {
    Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy)
}

/// Asked at 1 s; busy everywhere, at `place`, for another `remaining` ms.
fn waiting(members: usize, place: u64, remaining: u64) -> Board {
    let mut board = Board::new(members);
    board.begin(at(1_000), 0);
    for member in 0..members {
        board.asking(member, 0);
        let mut busy = Busy::by(Some(owner()));
        busy.place = Some(place);
        busy.remaining = Some(Duration::from_millis(remaining));
        board.busy(member, &busy, at(1_000));
    }
    board
}

#[test]
fn a_waiter_tries_at_once_when_a_majority_says_that_it_is_its_turn() {
    let mut board = waiting(5, 3, 30_000);
    assert_eq!(board.due(), soon(2_000), "the floor");
    for (member, when) in [(0, 1_100), (4, 1_101), (2, 1_102)] {
        board.hint(member, Word::YourTurn, None, at(when));
    }
    assert_eq!(board.due(), soon(1_102));
    board.begin(at(1_102), 0);
    assert_eq!(board.due(), soon(2_102), "it was answered by an attempt");
}

#[test]
fn an_attempt_is_led_by_the_first_word_since_the_one_before() {
    let mut board = waiting(3, 2, 30_000);
    assert_eq!(board.led_by(), None);
    board.hint(2, Word::YourTurn, None, at(1_100));
    board.hint(0, Word::YourTurn, None, at(1_103));
    assert_eq!(board.led_by(), None, "no attempt was made yet");
    board.begin(at(1_104), 0);
    assert_eq!(board.led_by(), soon(1_100));
    board.begin(at(2_000), 0);
    assert_eq!(board.led_by(), None, "the next one had another reason");
}

#[test]
fn who_is_called_asks_at_once_and_only_once() {
    let mut board = waiting(3, 1, 30_000);
    board.call(at(1_100));
    assert_eq!(board.due(), soon(1_100));
    board.begin(at(1_101), 0);
    assert_eq!(board.led_by(), soon(1_100));
    assert_eq!(board.due(), soon(2_101), "the floor");
    board.begin(at(2_101), 0);
    assert_eq!(board.led_by(), None);
}

#[test]
fn a_minoritys_word_is_good_for_an_attempt_and_for_fewer_each_time() {
    let mut board = waiting(5, 1, 30_000);
    let mut now = 1_100;
    for patience in [20, 40, 80, 160, 320, 640, 1_000, 1_000] {
        board.hint(3, Word::YourTurn, None, at(now));
        board.hint(3, Word::YourTurn, None, at(now + 5));
        assert_eq!(board.turn_comes(), Some(at(now + patience)));
        board.begin(at(now + patience), 0);
        now += patience + 1;
    }
    for member in 0..3 {
        board.hint(member, Word::YourTurn, None, at(now));
    }
    board.begin(at(now), 0);
    board.hint(3, Word::YourTurn, None, at(now));
    assert_eq!(board.due(), soon(now + 20), "a majority came in between");
}

/// Refused at some members, which would have granted permit 2 of 3.
fn refused_for_another(board: &mut Board, members: &[usize], now: u64) {
    let permits = Permits::new(3).unwrap();
    for member in members {
        let mut busy = Busy::by(Some(owner()));
        busy.place = Some(1);
        busy.remaining = Some(Duration::from_secs(30));
        busy.free.insert(Slot::new(2, permits).unwrap());
        board.busy(*member, &busy, at(now));
    }
}

#[test]
fn who_asked_for_a_taken_permit_in_its_turn_asks_at_once_for_another_and_then_less_and_less() {
    let mut board = waiting(3, 1, 30_000);
    refused_for_another(&mut board, &[0, 2], 1_005);
    assert_eq!(board.due(), soon(1_005));
    assert_eq!(board.said().agreed().len(), 1);
    let mut now = 1_005;
    for most in [40, 80, 160, 320, 320] {
        // A number that is so many milliseconds after any bound.
        board.begin(at(now), (most - 1) * 1_000);
        assert!(board.said().is_empty(), "what was said led to this attempt");
        now += 5;
        refused_for_another(&mut board, &[0, 1], now);
        assert_eq!(board.due(), soon(now + most - 1));
        now += most;
    }
    board.begin(at(now), 7);
    assert_ne!(board.fruitless, 0);
    board.begin(at(now + 1), 7);
    assert_eq!(board.fruitless, 0, "nobody refused it in favour of another");
}

#[test]
fn who_asked_in_vain_again_and_again_asks_at_once_when_a_majority_names_one_permit() {
    let permits = Permits::new(3).unwrap();
    let slot = |number| Slot::new(number, permits).ok();
    let refused_often = || {
        let mut board = waiting(3, 1, 30_000);
        for now in 1_001..1_010 {
            refused_for_another(&mut board, &[0, 1], now);
            board.begin(at(now), 999_999);
        }
        refused_for_another(&mut board, &[2], 1_010);
        board
    };
    for (named, due) in [
        ([slot(1), slot(1)], 1_101),
        ([None, None], 1_101),
        ([slot(1), slot(2)], 2_100),
    ] {
        let mut board = refused_often();
        for (member, slot) in named.into_iter().enumerate() {
            board.hint(member, Word::YourTurn, slot, at(1_100 + member as u64));
        }
        assert_eq!(board.due(), soon(due), "{named:?}");
        board.begin(at(2_100), 0);
        assert_eq!(board.agreed(), None, "what was said led to this attempt");
    }
}

#[test]
fn a_minority_that_would_grant_another_permit_is_asked_after_the_others_had_their_time() {
    let mut board = waiting(5, 1, 30_000);
    refused_for_another(&mut board, &[0, 2], 1_005);
    assert_eq!(board.due(), soon(1_025));
}

#[test]
fn the_permits_that_members_name_are_known_until_the_next_attempt() {
    let mut board = waiting(3, 1, 30_000);
    let slot = Slot::new(1, Permits::new(3).unwrap()).ok();
    for member in [0, 1] {
        board.hint(member, Word::YourTurn, slot, at(1_100));
    }
    let word = Word::Soon {
        remaining: Duration::from_secs(1),
    };
    board.hint(1, word, None, at(1_101));
    assert_eq!(board.said().named.len(), 2);
    board.begin(at(1_102), 0);
    assert!(board.said().is_empty());
}

#[test]
fn the_head_and_the_next_try_when_the_lease_is_over_and_others_do_not() {
    assert_eq!(waiting(3, 1, 500).due(), soon(1_503));
    assert_eq!(waiting(3, 2, 500).due(), soon(1_550));
    assert_eq!(waiting(3, 3, 500).due(), soon(2_000));
    assert_eq!(waiting(3, 17, 500).due(), soon(5_000));
}

#[test]
fn a_majority_decides_when_a_lease_is_over() {
    let mut board = waiting(5, 1, 100);
    for member in [1, 3] {
        let mut busy = Busy::by(None);
        busy.place = Some(9);
        busy.remaining = Some(Duration::from_millis(700));
        board.busy(member, &busy, at(1_000));
    }
    assert_eq!(board.due(), soon(1_103), "three of five are free then");
}

#[test]
fn the_head_looks_after_a_silent_holder_ten_times_a_second_and_nobody_else_does() {
    for (place, due) in [(1, 1_090), (2, 2_000)] {
        let mut board = waiting(1, place, 30_000);
        let mut busy = Busy::by(None);
        busy.place = Some(place);
        busy.silent = true;
        board.busy(0, &busy, at(1_000));
        assert_eq!(board.due(), Some(at(due)));
    }
}

#[test]
fn who_stands_in_asks_when_the_first_had_its_time_whatever_it_asked_before() {
    let mut board = waiting(3, 9, 30_000);
    let word = Word::Soon {
        remaining: Duration::from_millis(400),
    };
    board.hint(0, word, None, at(1_100));
    board.hint(1, word, None, at(1_101));
    assert_eq!(board.due(), soon(1_511), "when both have");
    board.begin(at(1_300), 0);
    assert_eq!(board.due(), soon(1_511), "it asked for another reason");
    board.hint(1, word, None, at(1_400));
    assert_eq!(board.due(), soon(1_810), "the lock went on meanwhile");
    for member in [0, 1] {
        let mut busy = Busy::by(Some(owner()));
        busy.place = Some(9);
        board.busy(member, &busy, at(1_500));
    }
    assert_eq!(board.due(), soon(2_300), "somebody took it: the floor");
}

#[test]
fn a_word_that_led_to_an_attempt_leads_to_no_other() {
    let mut board = waiting(3, 9, 30_000);
    let word = Word::Soon {
        remaining: Duration::from_millis(400),
    };
    board.hint(0, word, None, at(1_100));
    board.hint(1, word, None, at(1_100));
    assert_eq!(board.due(), soon(1_510));
    board.begin(at(1_510), 0);
    assert_eq!(board.due(), soon(2_510), "the floor");
}

#[test]
fn who_is_not_heard_asks_again_but_not_in_a_busy_loop() {
    let mut board = waiting(3, 20, 30_000);
    board.deaf(1, at(1_010));
    assert_eq!(board.due(), soon(2_000));
    let mut board = waiting(3, 20, 30_000);
    board.deaf(1, at(3_000));
    assert_eq!(board.due(), soon(3_000));
    board.begin(at(3_000), 0);
    board.asking(1, 0);
    assert_eq!(board.due(), soon(7_000));
}

#[test]
fn members_where_it_never_asked_are_no_matter() {
    let mut board = Board::new(3);
    board.asking(2, 0);
    board.deaf(0, at(5));
    assert_eq!(board.due(), None, "it never asked");
    let queued = |board: &Board| [0, 1, 2].map(|member| board.is_queued(member));
    assert_eq!(queued(&board), [false, false, true]);
    board.granted(2);
    assert_eq!(queued(&board), [false; 3]);
    board.requeued(1);
    assert_eq!(queued(&board), [false, true, false]);
}

#[test]
fn whoever_saw_the_lock_kept_for_somebody_looks_once_that_is_over() {
    let mut board = waiting(3, 40, 900);
    assert_eq!(board.due(), soon(5_000), "somebody holds it: the floor");
    let mut kept = Busy::by(None);
    kept.place = Some(40);
    kept.remaining = Some(Duration::from_millis(900));
    for member in 0..3 {
        board.busy(member, &kept, at(1_000));
    }
    assert_eq!(board.due(), soon(2_010), "no sooner than a second after");
}

#[test]
fn who_cannot_be_told_looks_the_oftener_the_nearer_its_turn_is() {
    let untold_at = |members: &[usize], place: u64| {
        let mut board = waiting(3, place, 30_000);
        let mut busy = Busy::by(Some(owner()));
        busy.place = Some(place);
        busy.untold = true;
        for member in members {
            board.busy(*member, &busy, at(1_000));
        }
        board.due()
    };
    assert_eq!(untold_at(&[0, 1], 1), soon(1_090));
    assert_eq!(untold_at(&[0, 1, 2], 4), soon(1_360));
    assert_eq!(untold_at(&[0, 1, 2], 40), soon(4_600));
    assert_eq!(untold_at(&[1], 1), soon(2_000), "two can tell it");
}

#[test]
fn members_that_never_agree_on_a_permit_are_asked_once_a_second_in_the_end() {
    let permits = Permits::new(2).unwrap();
    let mut board = waiting(3, 1, 30_000);
    let mut now = at(1_000);
    for _ in 0..8 {
        for (member, slot) in permits.slots().enumerate() {
            let mut busy = Busy::by(Some(owner()));
            busy.place = Some(1);
            busy.free.insert(slot);
            board.busy(member, &busy, now);
        }
        let due = board.turn_comes().unwrap();
        assert!(due.since(now) <= FLOOR_NEAR);
        now = due;
        board.begin(now, 0);
    }
    board.busy(0, &with_a_free_permit(permits), now);
    board.busy(1, &with_a_free_permit(permits), now);
    assert_eq!(board.turn_comes(), Some(now + FLOOR_NEAR));
}

fn with_a_free_permit(permits: Permits) -> Busy {
    let mut busy = Busy::by(None);
    busy.free = permits.slots().take(1).collect();
    busy
}

#[test]
fn who_is_to_show_itself_asks_soon_whatever_other_members_said_and_once() {
    let mut board = waiting(5, 3, 30_000);
    for (member, remaining) in [(0, 4), (1, 4), (2, 0)] {
        let remaining = Duration::from_secs(remaining);
        board.hint(member, Word::Soon { remaining }, None, at(1_100));
    }
    assert_eq!(board.due(), soon(1_120));
    board.begin(at(1_120), 0);
    assert_eq!(board.due(), soon(2_120));
    let remaining = Duration::ZERO;
    board.hint(3, Word::Soon { remaining }, None, at(1_121));
    assert_eq!(board.due(), soon(1_141));
    board.busy(3, &Busy::by(Some(owner())), at(1_122));
    assert_eq!(board.due(), soon(2_120), "it came before the answer");
}
