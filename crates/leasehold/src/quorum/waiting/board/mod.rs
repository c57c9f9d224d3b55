//! When a waiter tries again: decided from what the members answered and told, and nothing else.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::attempt::Busy;
use crate::clock::BootInstant;
use crate::member::RESERVATION;
use crate::permits::{Slot, Slots};
use crate::queue::Word;
use crate::quorum::ballot::majority;
use crate::quorum::slots::Sayings;

/// What one waiter knows of its place at each member.
#[derive(Clone, Debug)]
pub(super) struct Board {
    seats: Vec<Seat>,
    /// When the last attempt began: none has, to begin with.
    asked: Option<BootInstant>,
    /// The first word that it is this waiter's turn, of those that led up to it.
    led_by: Option<BootInstant>,
    /// Drawn with it: spreads what many waiters would otherwise do at once.
    random: u64,
    /// How many attempts in a row were made on the word of a minority, or after one for a permit that
    /// somebody else had.
    fruitless: u32,
}

#[derive(Clone, Debug, Default)]
struct Seat {
    /// The member may have the waiter in its queue.
    queued: bool,
    /// Since when it says that it is this waiter's turn.
    told: Option<BootInstant>,
    /// The permit that it told the waiter of.
    named: Option<Slot>,
    /// The permits that it would have granted instead of the one that was wanted.
    free: Slots,
    /// Since when nothing is heard from there.
    deaf: Option<BootInstant>,
    /// Since when it wants to know whether the waiter is still there.
    wanted: Option<BootInstant>,
    /// When it is worth asking there, should nothing be heard by then, as the member once said.
    soon: Option<BootInstant>,
    /// When what is kept for somebody else there lapses, should that one never come.
    lapses: Option<BootInstant>,
    place: Option<u64>,
    /// When the lock is free there, unless its holder renews.
    until: Option<BootInstant>,
    /// Whoever holds it there will tell nobody.
    silent: bool,
    /// The waiter cannot be told anything there.
    untold: bool,
}

impl Board {
    pub(super) fn new(members: usize) -> Self {
        Self {
            seats: vec![Seat::default(); members],
            asked: None,
            led_by: None,
            random: 0,
            fruitless: 0,
        }
    }

    /// An attempt begins: what was told before leads up to it, and nothing further.
    pub(super) fn begin(&mut self, now: BootInstant, random: u64) {
        let told = self.told();
        let on_a_minoritys_word = told > 0 && told < majority(self.seats.len());
        self.fruitless = if on_a_minoritys_word || self.wanted_another() {
            self.fruitless.saturating_add(1)
        } else {
            0
        };
        self.asked = Some(now);
        self.led_by = self.seats.iter().filter_map(|seat| seat.told).min();
        self.random = random;
        for seat in &mut self.seats {
            seat.told = None;
            seat.wanted = None;
            seat.named = None;
            seat.free = Slots::default();
            // Before, it is an attempt for another reason.
            seat.soon.take_if(|soon| *soon <= now);
        }
    }

    /// When the first member said that it is this waiter's turn, if that led up to the last attempt.
    pub(super) fn led_by(&self) -> Option<BootInstant> {
        self.led_by
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
        seat.wanted = None;
        seat.until = None;
    }

    pub(super) fn busy(&mut self, member: usize, busy: &Busy, now: BootInstant) {
        let seat = &mut self.seats[member];
        // It answers in the order in which it tells: it has heard of the waiter since.
        seat.wanted = None;
        seat.place = busy.place;
        seat.until = busy.remaining.map(|remaining| now + remaining);
        seat.silent = busy.silent;
        seat.untold = busy.untold;
        seat.free = busy.free;
        if !busy.free.is_empty() {
            // It need not be told that it is its turn.
            seat.told.get_or_insert(now);
        }
        if busy.holder.is_some() {
            // Whoever came before had its time, and used it.
            seat.soon = None;
        }
        let is_kept = busy.holder.is_none() && busy.remaining.is_some_and(|it| it <= RESERVATION);
        seat.lapses = seat.until.filter(|_| is_kept);
    }

    /// The lock was freed at the member, and the waiter put back into its queue there.
    pub(super) fn requeued(&mut self, member: usize) {
        self.seats[member].queued = true;
    }

    pub(super) fn hint(&mut self, member: usize, word: Word, slot: Option<Slot>, now: BootInstant) {
        let seat = &mut self.seats[member];
        match word {
            Word::YourTurn => {
                seat.told.get_or_insert(now);
                seat.named = slot;
            }
            Word::Soon { remaining } if remaining.is_zero() => {
                seat.wanted.get_or_insert(now);
            }
            Word::Soon { remaining } => seat.soon = Some(now + remaining),
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

    /// What is known of the lock's permits.
    pub(super) fn said(&self) -> Sayings {
        Sayings {
            named: self.seats.iter().filter_map(|seat| seat.named).collect(),
            free: self.seats.iter().map(|seat| seat.free).collect(),
        }
    }

    /// When the next attempt is due; `None`: at once, as the waiter has no place yet.
    pub(super) fn due(&self) -> Option<BootInstant> {
        let asked = self.asked?;
        let other = [
            self.turn_comes(),
            self.turn_is_near(asked),
            self.is_wanted(),
            self.nobody_will_tell(asked),
            self.word_is_due(asked),
            self.nobody_came(asked),
            self.hearing_is_lost(asked),
        ];
        other
            .into_iter()
            .flatten()
            .chain([asked + self.floor()])
            .min()
    }

    fn told(&self) -> usize {
        self.seats.iter().filter(|seat| seat.told.is_some()).count()
    }

    /// Whether a member refused the last attempt and would have granted another permit.
    fn wanted_another(&self) -> bool {
        self.seats.iter().any(|seat| !seat.free.is_empty())
    }

    /// A majority says that it is this waiter's turn; or a minority does, and the others had their
    /// time. That time doubles with each attempt that it led to in vain. Those who went for the same
    /// permit again and again wait for different times.
    fn turn_comes(&self) -> Option<BootInstant> {
        let mut told: Vec<BootInstant> = self.seats.iter().filter_map(|seat| seat.told).collect();
        told.sort_unstable();
        if let Some(decisive) = told.get(majority(self.seats.len()) - 1) {
            let collided = self.wanted_another() && self.fruitless > 0;
            let apart = OTHERS_MAY_FOLLOW * 2_u32.saturating_pow(self.fruitless.min(6));
            return Some(match collided {
                // Members that each miss another lease never agree: they are asked once a second.
                true if apart > FLOOR_NEAR => *decisive + FLOOR_NEAR,
                true => *decisive + self.spread(apart),
                false => *decisive,
            });
        }
        let patience = OTHERS_MAY_FOLLOW * 2_u32.saturating_pow(self.fruitless.min(6));
        Some(*told.first()? + patience.min(FLOOR_NEAR))
    }

    /// The head, and the next one in case it is dead, try when a majority may be free.
    fn turn_is_near(&self, asked: BootInstant) -> Option<BootInstant> {
        let until = decisive(self.seats.iter().filter_map(|seat| seat.until), &self.seats);
        let free = until.map(|until| until.max(asked));
        match self.place()? {
            1 if self.seats.iter().any(|seat| seat.silent) => {
                let poll = asked + SILENT_POLL + self.spread(SILENT_POLL / 4);
                Some(free.map_or(poll, |free| poll.min(free + SLACK_OF_HEAD)))
            }
            1 => Some(free? + SLACK_OF_HEAD),
            2 => Some(free? + SLACK_OF_NEXT),
            _ => None,
        }
    }

    /// Where too few members can tell this waiter that it is its turn, it looks: the nearer its turn, the
    /// more often, so that all of them together do not ask more than a few times as often as the
    /// first.
    fn nobody_will_tell(&self, asked: BootInstant) -> Option<BootInstant> {
        let tell = self.seats.iter().filter(|seat| !seat.untold).count();
        let place = u32::try_from(self.place()?).unwrap_or(u32::MAX);
        let pause = SILENT_POLL.saturating_mul(place);
        (tell < majority(self.seats.len()))
            .then(|| asked + pause.min(FLOOR_FAR) + self.spread(SILENT_POLL / 4))
    }

    /// A single member drops whoever does not show itself. It asks for that once a second at most, and
    /// the others may follow: one attempt shows it to all.
    fn is_wanted(&self) -> Option<BootInstant> {
        let first = self.seats.iter().filter_map(|seat| seat.wanted).min()?;
        Some(first + OTHERS_MAY_FOLLOW)
    }

    /// Members said that it would be worth asking by now.
    fn word_is_due(&self, asked: BootInstant) -> Option<BootInstant> {
        let soon = decisive(self.seats.iter().filter_map(|seat| seat.soon), &self.seats)?;
        Some(soon.max(asked) + SLACK_OF_WORD)
    }

    /// Of several dead waiters in a row only the first has somebody who was told to stand in: whoever
    /// saw the lock kept for one, and still waits when that is over, looks once more.
    fn nobody_came(&self, asked: BootInstant) -> Option<BootInstant> {
        let lapses = decisive(
            self.seats.iter().filter_map(|seat| seat.lapses),
            &self.seats,
        )?;
        Some(lapses.max(asked + FLOOR_NEAR) + SLACK_OF_WORD + self.spread(SPREAD_OF_DEAF))
    }

    /// Where the waiter hears nothing any more it is being skipped: it asks again, but where the
    /// connection breaks each time, no more than once a second.
    fn hearing_is_lost(&self, asked: BootInstant) -> Option<BootInstant> {
        let lost = self.seats.iter().filter_map(|seat| seat.deaf).min()?;
        Some((lost + self.spread(SPREAD_OF_DEAF)).max(asked + FLOOR_NEAR))
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

/// After the first member said that it is a waiter's turn, or wanted to hear of it, the others may have
/// as long as this.
const OTHERS_MAY_FOLLOW: Duration = Duration::from_millis(20);

/// How much later than the end of a lease the head tries, since servers count in milliseconds; and
/// how much later the one behind it does.
const SLACK_OF_HEAD: Duration = Duration::from_millis(3);
const SLACK_OF_NEXT: Duration = Duration::from_millis(50);

/// How much later than a member said it is asked.
const SLACK_OF_WORD: Duration = Duration::from_millis(10);

/// How often the head looks whether another library has freed its lock, or whether it is its turn where
/// nobody can tell it.
const SILENT_POLL: Duration = Duration::from_millis(90);

/// So many at the front ask at least every two seconds, unheard; those behind, every eight.
const NEAR: u64 = 16;
const FLOOR_NEAR: Duration = Duration::from_secs(1);
const FLOOR_FAR: Duration = Duration::from_secs(4);

/// Over this span those ask again whose connection broke.
const SPREAD_OF_DEAF: Duration = Duration::from_millis(50);
