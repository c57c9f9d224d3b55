//! When a waiter tries again: decided from what the members answered and told, and nothing else.

mod due;
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
    /// Since when its own client gives the lock back, with nobody before it.
    called: Option<BootInstant>,
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
    /// Since when it says so unasked, and not by a refusal that names another permit.
    hinted: Option<BootInstant>,
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
    /// How many of its client had got the lock from one another when it was asked for that: these stood
    /// in the queue until then.
    heirs_before: u64,
    /// How many had when it was asked last.
    heirs_asked: u64,
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
            called: None,
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
        let told = self.seats.iter().filter_map(|seat| seat.told);
        self.led_by = told.chain(self.called.take()).min();
        self.random = random;
        for seat in &mut self.seats {
            seat.told = None;
            seat.hinted = None;
            seat.wanted = None;
            seat.named = None;
            seat.free = Slots::default();
            // Before, it is an attempt for another reason.
            seat.soon.take_if(|soon| *soon <= now);
        }
    }

    /// When this waiter was first told, or called, that it is its turn, if that led up to the last
    /// attempt.
    pub(super) fn led_by(&self) -> Option<BootInstant> {
        self.led_by
    }

    /// Its own client gives the lock back, and nobody is before it.
    pub(super) fn call(&mut self, now: BootInstant) {
        self.called = Some(now);
    }

    /// The member is asked: from now on it may have the waiter in its queue.
    pub(super) fn asking(&mut self, member: usize, heirs: u64) {
        let seat = &mut self.seats[member];
        seat.queued = true;
        seat.heirs_asked = heirs;
        seat.deaf = None;
    }

    /// The member granted the lock, and with that took the waiter out of its queue.
    pub(super) fn granted(&mut self, member: usize) {
        let seat = &mut self.seats[member];
        seat.queued = false;
        seat.hinted = None;
        seat.wanted = None;
        seat.until = None;
    }

    pub(super) fn busy(&mut self, member: usize, busy: &Busy, now: BootInstant) {
        let seat = &mut self.seats[member];
        // It answers in the order in which it tells: it has heard of the waiter since.
        seat.wanted = None;
        seat.place = busy.place;
        seat.heirs_before = seat.heirs_asked;
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
                seat.hinted.get_or_insert(now);
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

    /// The members that said since the last attempt began that it is this waiter's turn, and did not
    /// grant it; with the permit that each named.
    pub(super) fn turns(&self) -> impl Iterator<Item = (usize, Option<Slot>)> {
        let seats = self.seats.iter().enumerate();
        let told = seats.filter(|(_, seat)| seat.hinted.is_some());
        told.map(|(member, seat)| (member, seat.named))
    }

    /// The place that a majority of members gives at most, where so many have said it.
    pub(super) fn place(&self) -> Option<u64> {
        decisive(self.seats.iter().filter_map(|seat| seat.place), &self.seats)
    }

    /// How many come before it and itself, now that so many of its client have got the lock from one
    /// another; `None` unless a majority has said so.
    pub(super) fn place_after(&self, heirs: u64) -> Option<u64> {
        let place = |seat: &Seat| {
            let since = heirs.saturating_sub(seat.heirs_before);
            // The one for whom it was kept is in no queue, and came before it.
            let kept = u64::from(seat.lapses.is_some());
            seat.place.map(|place| (place + kept).saturating_sub(since))
        };
        let places = self.seats.iter().filter_map(place);
        if places.clone().count() < majority(self.seats.len()) {
            return None;
        }
        decisive(places, &self.seats)
    }

    /// How long ago the last attempt began.
    pub(super) fn asked_since(&self, now: BootInstant) -> Duration {
        self.asked.map_or(Duration::MAX, |asked| now.since(asked))
    }

    /// The waiter is taken out of the member's queue.
    pub(super) fn leaves(&mut self, member: usize) {
        self.seats[member].queued = false;
    }

    /// What is known of the lock's permits.
    pub(super) fn said(&self) -> Sayings {
        Sayings {
            named: self.seats.iter().filter_map(|seat| seat.named).collect(),
            free: self.seats.iter().map(|seat| seat.free).collect(),
        }
    }

    fn told(&self) -> usize {
        self.seats.iter().filter(|seat| seat.told.is_some()).count()
    }

    /// Whether a member refused the last attempt and would have granted another permit.
    fn wanted_another(&self) -> bool {
        self.seats.iter().any(|seat| !seat.free.is_empty())
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
