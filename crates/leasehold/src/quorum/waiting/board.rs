//! When a waiter tries again: decided from what the members answered and told, and nothing else.

use std::time::Duration;

use crate::attempt::Busy;
use crate::clock::BootInstant;
use crate::queue::Word;
use crate::quorum::ballot::majority;

/// What one waiter knows of its place at each member.
#[derive(Clone, Debug)]
pub(super) struct Board {
    seats: Vec<Seat>,
    /// When the last attempt began.
    asked: BootInstant,
    /// Drawn with it: spreads what many waiters would otherwise do at once.
    random: u64,
    /// How many attempts in a row were made on the word of a minority.
    fruitless: u32,
}

#[derive(Clone, Debug, Default)]
struct Seat {
    /// The member may have the waiter in its queue.
    queued: bool,
    /// Since when it says that it is this waiter's turn.
    told: Option<BootInstant>,
    /// Since when nothing is heard from there.
    deaf: Option<BootInstant>,
    place: Option<u64>,
    /// When the lock is free there, unless its holder renews.
    until: Option<BootInstant>,
    /// Whoever holds it there will tell nobody.
    silent: bool,
}

impl Board {
    pub(super) fn new(members: usize, now: BootInstant) -> Self {
        Self {
            seats: vec![Seat::default(); members],
            asked: now,
            random: 0,
            fruitless: 0,
        }
    }

    /// An attempt begins: what was told before leads up to it, and nothing further.
    pub(super) fn begin(&mut self, now: BootInstant, random: u64) {
        let told = self.told();
        let on_a_minoritys_word = told > 0 && told < majority(self.seats.len());
        self.fruitless = if on_a_minoritys_word {
            self.fruitless.saturating_add(1)
        } else {
            0
        };
        self.asked = now;
        self.random = random;
        for seat in &mut self.seats {
            seat.told = None;
        }
    }

    /// The member is asked: from now on it may have the waiter in its queue.
    pub(super) fn asking(&mut self, member: usize) {
        let seat = &mut self.seats[member];
        seat.queued = true;
        seat.deaf = None;
    }

    /// The member granted the lock, and with that took the waiter out of its queue.
    pub(super) fn granted(&mut self, member: usize) {
        let seat = &mut self.seats[member];
        seat.queued = false;
        seat.until = None;
    }

    pub(super) fn busy(&mut self, member: usize, busy: &Busy, now: BootInstant) {
        let seat = &mut self.seats[member];
        seat.place = busy.place;
        seat.until = busy.remaining.map(|remaining| now + remaining);
        seat.silent = busy.silent;
    }

    /// The lock was freed at the member, and the waiter put back into its queue there.
    pub(super) fn requeued(&mut self, member: usize) {
        self.seats[member].queued = true;
    }

    pub(super) fn hint(&mut self, member: usize, word: Word, now: BootInstant) {
        let seat = &mut self.seats[member];
        match word {
            Word::YourTurn => {
                seat.told.get_or_insert(now);
            }
            Word::Soon { remaining } => {
                seat.place = Some(seat.place.map_or(2, |place| place.min(2)));
                seat.until = Some(now + remaining);
            }
        }
    }

    pub(super) fn deaf(&mut self, member: usize, now: BootInstant) {
        let seat = &mut self.seats[member];
        if seat.queued {
            seat.deaf.get_or_insert(now);
        }
    }

    /// Whether the waiter may stand in the member's queue.
    pub(super) fn is_queued(&self, member: usize) -> bool {
        self.seats[member].queued
    }

    /// The place that a majority of members gives at most, where so many have said it.
    pub(super) fn place(&self) -> Option<u64> {
        decisive(self.seats.iter().filter_map(|seat| seat.place), &self.seats)
    }

    /// When the next attempt is due.
    pub(super) fn due(&self) -> BootInstant {
        let floor = self.asked + self.floor();
        let turn = self.turn_comes().unwrap_or(floor);
        floor
            .min(turn)
            .min(self.turn_is_near(floor))
            .min(self.hearing_is_lost(floor))
    }

    fn told(&self) -> usize {
        self.seats.iter().filter(|seat| seat.told.is_some()).count()
    }

    /// A majority says that it is this waiter's turn; or a minority does, and the others had their
    /// time. That time doubles with each attempt that it led to in vain.
    fn turn_comes(&self) -> Option<BootInstant> {
        let mut told: Vec<BootInstant> = self.seats.iter().filter_map(|seat| seat.told).collect();
        told.sort_unstable();
        if let Some(decisive) = told.get(majority(self.seats.len()) - 1) {
            return Some(*decisive);
        }
        let patience = OTHERS_MAY_FOLLOW * 2_u32.saturating_pow(self.fruitless.min(6));
        Some(*told.first()? + patience.min(FLOOR_NEAR))
    }

    /// The head, and the next one in case it is dead, try when a majority may be free.
    fn turn_is_near(&self, floor: BootInstant) -> BootInstant {
        let Some(place) = self.place() else {
            return floor;
        };
        let until = decisive(self.seats.iter().filter_map(|seat| seat.until), &self.seats);
        let silent = self.seats.iter().any(|seat| seat.silent);
        let slack = match place {
            1 if silent => {
                let poll = self.asked + SILENT_POLL + self.spread(SILENT_POLL / 4);
                return until.map_or(poll, |until| poll.min(until + SLACK_OF_HEAD));
            }
            1 => SLACK_OF_HEAD,
            2 => SLACK_OF_NEXT,
            _ => return floor,
        };
        until.map_or(floor, |until| until.max(self.asked) + slack)
    }

    /// Where the waiter is heard no more it is being skipped: it asks again, but a connection that
    /// breaks each time is not asked more than once a second.
    fn hearing_is_lost(&self, floor: BootInstant) -> BootInstant {
        let lost = self.seats.iter().filter_map(|seat| seat.deaf).min();
        lost.map_or(floor, |since| {
            let soon = since + self.spread(SPREAD_OF_DEAF);
            soon.max(self.asked + FLOOR_NEAR)
        })
    }

    /// How long a waiter goes by what it was told, which may have been lost. Far behind, longer.
    fn floor(&self) -> Duration {
        let nearest = self.seats.iter().filter_map(|seat| seat.place).min();
        if nearest.is_none_or(|place| place <= NEAR) {
            FLOOR_NEAR + self.spread(FLOOR_NEAR)
        } else {
            FLOOR_FAR + self.spread(FLOOR_FAR)
        }
    }

    fn spread(&self, most: Duration) -> Duration {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.random % micros.max(1))
    }
}

/// What holds for a majority of members: the value that so many are at or below. Where fewer have
/// said anything, the greatest.
fn decisive<T: Ord>(values: impl Iterator<Item = T>, seats: &[Seat]) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.truncate(majority(seats.len()));
    values.pop()
}

/// After the first member said that it is a waiter's turn, the others may have as long as this.
const OTHERS_MAY_FOLLOW: Duration = Duration::from_millis(20);

/// How much later than the end of a lease the head tries, since servers count in milliseconds; and
/// how much later the one behind it does.
const SLACK_OF_HEAD: Duration = Duration::from_millis(3);
const SLACK_OF_NEXT: Duration = Duration::from_millis(50);

/// How often the head looks whether another library has freed its lock.
const SILENT_POLL: Duration = Duration::from_millis(90);

/// So many at the front ask at least every two seconds, unheard; those behind, every eight.
const NEAR: u64 = 16;
const FLOOR_NEAR: Duration = Duration::from_secs(1);
const FLOOR_FAR: Duration = Duration::from_secs(4);

/// Over this span those ask again whose connection broke.
const SPREAD_OF_DEAF: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> BootInstant {
        BootInstant::from_nanos(millis * 1_000_000)
    }

    /// Asked at 1 s; busy everywhere, at `place`, for another `remaining` ms.
    fn waiting(members: usize, place: u64, remaining: u64) -> Board {
        let mut board = Board::new(members, at(0));
        board.begin(at(1_000), 0);
        for member in 0..members {
            board.asking(member);
            let mut busy = Busy::by(None);
            busy.place = Some(place);
            busy.remaining = Some(Duration::from_millis(remaining));
            board.busy(member, &busy, at(1_000));
        }
        board
    }

    #[test]
    fn a_waiter_tries_at_once_when_a_majority_says_that_it_is_its_turn() {
        let mut board = waiting(5, 3, 30_000);
        assert_eq!(board.due(), at(2_000), "the floor");
        for (member, when) in [(0, 1_100), (4, 1_101), (2, 1_102)] {
            board.hint(member, Word::YourTurn, at(when));
        }
        assert_eq!(board.due(), at(1_102));
        board.begin(at(1_102), 0);
        assert_eq!(board.due(), at(2_102), "it was answered by an attempt");
    }

    #[test]
    fn a_minoritys_word_is_good_for_an_attempt_and_for_fewer_each_time() {
        let mut board = waiting(5, 1, 30_000);
        let mut now = 1_100;
        for patience in [20, 40, 80, 160, 320, 640, 1_000, 1_000] {
            board.hint(3, Word::YourTurn, at(now));
            board.hint(3, Word::YourTurn, at(now + 5));
            assert_eq!(board.turn_comes(), Some(at(now + patience)));
            board.begin(at(now + patience), 0);
            now += patience + 1;
        }
        for member in 0..3 {
            board.hint(member, Word::YourTurn, at(now));
        }
        board.begin(at(now), 0);
        board.hint(3, Word::YourTurn, at(now));
        assert_eq!(board.due(), at(now + 20), "a majority came in between");
    }

    #[test]
    fn the_head_and_the_next_try_when_the_lease_is_over_and_others_do_not() {
        assert_eq!(waiting(3, 1, 500).due(), at(1_503));
        assert_eq!(waiting(3, 2, 500).due(), at(1_550));
        assert_eq!(waiting(3, 3, 500).due(), at(2_000));
        assert_eq!(waiting(3, 17, 500).due(), at(5_000));
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
        assert_eq!(board.due(), at(1_103), "three of five are free then");
    }

    #[test]
    fn the_head_looks_after_a_silent_holder_ten_times_a_second_and_nobody_else_does() {
        for (place, due) in [(1, 1_090), (2, 2_000)] {
            let mut board = waiting(1, place, 30_000);
            let mut busy = Busy::by(None);
            busy.place = Some(place);
            busy.silent = true;
            board.busy(0, &busy, at(1_000));
            assert_eq!(board.due(), at(due));
        }
    }

    #[test]
    fn the_next_one_in_line_takes_over_when_the_first_had_its_time() {
        let mut board = waiting(3, 9, 30_000);
        let word = Word::Soon {
            remaining: Duration::from_millis(400),
        };
        board.hint(0, word, at(1_100));
        assert_eq!(board.due(), at(2_000), "one of three");
        board.hint(1, word, at(1_101));
        board.busy(2, &Busy::by(None), at(1_101));
        assert_eq!(board.due(), at(1_551));
    }

    #[test]
    fn who_is_not_heard_asks_again_but_not_in_a_busy_loop() {
        let mut board = waiting(3, 20, 30_000);
        board.deaf(1, at(1_010));
        assert_eq!(board.due(), at(2_000));
        let mut board = waiting(3, 20, 30_000);
        board.deaf(1, at(3_000));
        assert_eq!(board.due(), at(3_000));
        board.begin(at(3_000), 0);
        board.asking(1);
        assert_eq!(board.due(), at(7_000));
    }

    #[test]
    fn members_where_it_never_asked_are_no_matter() {
        let mut board = Board::new(3, at(0));
        board.asking(2);
        board.deaf(0, at(5));
        assert_eq!(board.due(), at(1_000), "the floor");
        let queued = |board: &Board| [0, 1, 2].map(|member| board.is_queued(member));
        assert_eq!(queued(&board), [false, false, true]);
        board.granted(2);
        assert_eq!(queued(&board), [false; 3]);
        board.requeued(1);
        assert_eq!(queued(&board), [false, true, false]);
    }
}
