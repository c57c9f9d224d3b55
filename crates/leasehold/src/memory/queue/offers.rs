use std::collections::BTreeSet;
use std::time::Duration;

use super::joining::Sight;
use super::{Entry, Queue, Step};
use crate::claim::Mode;
use crate::clock::BootInstant;
use crate::member::RESERVATION;
use crate::owner::{ClientId, Owner};
use crate::permits::{Slot, Slots};
use crate::queue::{Ticket, Word};

/// A free permit that one who waits was told of, and is expected to take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// `None` if it knows itself which one.
    slot: Option<Slot>,
    end: BootInstant,
}

/// What is to be had of a lock of which permits are held.
pub(in crate::memory) struct Offering {
    pub(in crate::memory) mode: Mode,
    pub(in crate::memory) free: Slots,
    /// How long it is until the first of its leases ends.
    pub(in crate::memory) soonest: Duration,
    /// Who asks meanwhile, and the permit that it would get.
    pub(in crate::memory) asking: Option<(Ticket, Option<Slot>)>,
}

impl Queue {
    /// Tells those whose turn it is, as many as there are free permits, of one each, unless they were
    /// told already. Says whether it is the turn of `asking`, who need not be told.
    pub(in crate::memory) fn offer(&mut self, offering: &Offering, step: &mut Step<'_>) -> bool {
        self.make_offers(offering, step).1
    }

    /// The turn of one that asked for a permit which somebody else has: it knows of the others.
    pub(in crate::memory) fn expect(&mut self, ticket: Ticket, now: BootInstant) {
        self.note_offer(ticket, None, now);
    }

    /// Takes a waiter out, while permits are held: what was offered to it is offered to the next.
    pub(in crate::memory) fn leave_offers(
        &mut self,
        waiter: Owner,
        offering: &Offering,
        step: &mut Step<'_>,
    ) {
        self.hear_of(waiter.client());
        let place = self.place(waiter);
        self.remove(waiter);
        let (told, _) = self.make_offers(offering, step);
        if !told {
            self.move_up(place, offering.soonest, step);
        }
    }

    /// Whether anybody was told, and whether it is the turn of `asking`.
    fn make_offers(&mut self, offering: &Offering, step: &mut Step<'_>) -> (bool, bool) {
        let asking = offering.asking.map(|(ticket, _)| ticket);
        let mut open = self.open_slots(offering, step.now).into_iter();
        let (mut told, mut asked, mut its_turn) = (false, false, false);
        let mut called: BTreeSet<ClientId> = BTreeSet::new();
        let tickets: Vec<Ticket> = self.entries.keys().copied().collect();
        let mut turns = offering.free.len();
        for ticket in tickets {
            if turns == 0 {
                break;
            }
            let client = ticket.waiter.client();
            if self.is_late(client, step.now) {
                self.drop_client(client);
            }
            let Some(entry) = self.entries.get(&ticket) else {
                continue;
            };
            if entry.mode != offering.mode {
                // Permits of another number: it can have none of these, and learns so when it asks.
                if entry.mode.permits().is_some() {
                    step.tell(ticket.waiter, Word::YourTurn);
                    self.entries.remove(&ticket);
                    continue;
                }
                match self.show(ticket, step) {
                    Sight::Gone => continue,
                    Sight::Seen => {}
                    Sight::Asked => {
                        called.insert(client);
                        asked = true;
                    }
                }
                break;
            }
            if asking == Some(ticket) {
                its_turn = true;
            } else if entry.is_offered(step.now) {
                called.insert(client);
            } else {
                let slot = open.next();
                if !step.tell_of(slot, ticket.waiter, Word::YourTurn) {
                    self.entries.remove(&ticket);
                    continue;
                }
                self.note_offer(ticket, slot, step.now);
                called.insert(client);
                told = true;
            }
            turns -= 1;
        }
        // One that is refused in this step knows from the answer when to look again.
        let is_refused = asking.is_some() && !its_turn;
        if told || asked && !is_refused {
            let stands_in = |it: &Ticket, entry: &Entry| {
                let is_fellow = called.contains(&it.waiter.client()) || asking == Some(*it);
                entry.mode == offering.mode && !is_fellow
            };
            self.tell_soon(1, RESERVATION, stands_in, step);
        }
        (told, its_turn)
    }

    /// The free permits in the order in which they are offered: first what nobody was told of, last
    /// what somebody is about to take.
    fn open_slots(&self, offering: &Offering, now: BootInstant) -> Vec<Slot> {
        let offered: Slots = self
            .entries
            .values()
            .filter(|entry| entry.is_offered(now))
            .filter_map(|entry| entry.offer?.slot)
            .collect();
        let taken = offering.asking.and_then(|(_, slot)| slot);
        let mut open: Vec<Slot> = offering.free.iter().collect();
        open.sort_by_key(|slot| (taken == Some(*slot), offered.contains(*slot)));
        open
    }

    fn note_offer(&mut self, ticket: Ticket, slot: Option<Slot>, now: BootInstant) {
        let end = now + RESERVATION;
        if let Some(entry) = self.entries.get_mut(&ticket) {
            entry.offer = Some(Offer { slot, end });
            // Of several offers the first one that it does not answer tells that it is late.
            self.offered.entry(ticket.waiter.client()).or_insert(end);
            self.kept_until = Some(now + Self::KEPT);
        }
    }
}

impl Entry {
    /// Whether it was told that it is its turn, and may still come.
    fn is_offered(&self, now: BootInstant) -> bool {
        self.offer.is_some_and(|offer| now < offer.end)
    }
}
