//! Locks that are held together: whom those may not pass who could join.

use std::time::Duration;

use super::{Entry, Queue, Step};
use crate::claim::Mode;
use crate::clock::BootInstant;
use crate::member::RESERVATION;
use crate::owner::Owner;
use crate::queue::{Ticket, Word};

/// What is known of one that keeps others out of what they could share with those who hold it.
pub(super) enum Sight {
    /// It was there lately, or has its time still.
    Seen,
    /// It was just asked to show itself.
    Asked,
    /// It is dropped.
    Gone,
}

impl Queue {
    /// Whether this waiter, as long as it is there, keeps later readers out.
    pub(in crate::memory) fn keeps_readers_out(&self, waiter: Owner) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|(it, entry)| it.waiter == waiter && entry.mode != Mode::Shared)
    }

    /// Whether this waiter is the first, and wants the lock alone.
    pub(in crate::memory) fn is_first_alone(&self, waiter: Owner) -> bool {
        let first = self.entries.first_key_value();
        first.is_some_and(|(it, entry)| it.waiter == waiter && entry.mode == Mode::Exclusive)
    }

    /// Whoever kept others out is not there any more: the next one was not asked to show itself yet.
    pub(in crate::memory) fn ask_anew(&mut self) {
        self.shows = None;
    }

    /// Whether one who wants no share, and is there, stands before `ticket`: later readers do not
    /// overtake it.
    pub(in crate::memory) fn keeps_reader_out(
        &mut self,
        ticket: Ticket,
        step: &mut Step<'_>,
    ) -> bool {
        let is_other = |(_, entry): &(&Ticket, &Entry)| entry.mode != Mode::Shared;
        let (mut is_kept_out, mut somebody_is_gone) = (false, false);
        while let Some((&other, _)) = self.entries.range(..ticket).find(is_other) {
            is_kept_out = !matches!(self.show(other, step), Sight::Gone);
            if is_kept_out {
                break;
            }
            somebody_is_gone = true;
        }
        if somebody_is_gone {
            // Also where the next one keeps this reader out: others stand between the two.
            self.call_readers(Some(ticket), step);
        }
        is_kept_out
    }

    /// Tells the readers up to the first writer, but not the one that asks, that they may join. They
    /// keep their places until they come.
    pub(in crate::memory) fn call_readers(&mut self, asking: Option<Ticket>, step: &mut Step<'_>) {
        let entries = self.entries.iter();
        let entries: Vec<_> = entries.map(|(it, entry)| (*it, entry.mode)).collect();
        for (ticket, mode) in entries {
            if !self.entries.contains_key(&ticket) || asking == Some(ticket) {
                continue;
            }
            if mode != Mode::Shared {
                if self.keeps_others_out(ticket, asking, step) {
                    return;
                }
            } else if !step.tell(ticket.waiter, Word::YourTurn) {
                self.entries.remove(&ticket);
            }
        }
    }

    /// Whether the readers behind this waiter, if there are any, have to wait for it. One of them
    /// learns when it is late, if it is.
    fn keeps_others_out(
        &mut self,
        ticket: Ticket,
        asking: Option<Ticket>,
        step: &mut Step<'_>,
    ) -> bool {
        let client = ticket.waiter.client();
        let stands_in = |it: &Ticket, entry: &Entry| {
            let is_fellow = it.waiter.client() == client || asking == Some(*it);
            ticket < *it && entry.mode == Mode::Shared && !is_fellow
        };
        if !self.entries.iter().any(|(it, entry)| stands_in(it, entry)) {
            return true;
        }
        let sight = self.show(ticket, step);
        if matches!(sight, Sight::Asked) {
            self.tell_soon(1, RESERVATION, stands_in, step);
        }
        !matches!(sight, Sight::Gone)
    }

    /// Whether one is there that keeps others out of what they could share. Hearing is not enough:
    /// the connection of one whose machine lost power stands. So now and then it is asked to show
    /// itself, and who has not been heard when a reservation would lapse is late.
    pub(super) fn show(&mut self, ticket: Ticket, step: &mut Step<'_>) -> Sight {
        let client = ticket.waiter.client();
        if self.is_late(client, step.now) {
            self.drop_client(client);
            return Sight::Gone;
        }
        if self.shows.is_some() {
            return Sight::Seen;
        }
        let remaining = Duration::ZERO;
        if !step.tell(ticket.waiter, Word::Soon { remaining }) {
            self.entries.remove(&ticket);
            return Sight::Gone;
        }
        let end = step.now + RESERVATION;
        self.shows = Some(end);
        self.offered.entry(client).or_insert(end);
        Sight::Asked
    }

    /// How long it takes until the first of those before `ticket` is late who were told something and
    /// have not been heard since.
    pub(in crate::memory) fn awaited(&self, ticket: Ticket, now: BootInstant) -> Option<Duration> {
        let before = self.entries.range(..ticket);
        let ends = before.filter_map(|(it, _)| self.offered.get(&it.waiter.client()));
        let next = ends.filter(|end| now < **end).min()?;
        Some(next.since(now))
    }
}
