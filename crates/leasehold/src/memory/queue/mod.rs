mod joining;
mod offers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::claim::{Claim, Mode};
use crate::clock::BootInstant;
use crate::holder::ClientInfo;
use crate::key::Key;
use crate::member::RESERVATION;
use crate::owner::{ClientId, Owner};
use crate::permits::Slot;
use crate::queue::{Hint, Ticket, Waiter, Word};

pub(super) use offers::Offering;

/// Who waits for one key, and for whom it is reserved.
///
/// Knows nothing of leases: whoever calls [`Queue::hand_over`] sees to it that there are none.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// The waiter of the reservation is not among them.
    entries: BTreeMap<Ticket, Entry>,
    reserved: Option<Reservation>,
    /// When that lapses which was kept for a client, or asked of it; until the client is heard of.
    offered: BTreeMap<ClientId, BootInstant>,
    gap: Option<BootInstant>,
    /// Until when nobody else is asked to show itself, as long as the one that was keeps its place.
    shows: Option<BootInstant>,
    /// When the entries and offers are forgotten unless somebody asks.
    kept_until: Option<BootInstant>,
}

/// What is known of one who waits, beside its ticket.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    mode: Mode,
    client: Arc<ClientInfo>,
    /// The permit that is offered to it.
    offer: Option<offers::Offer>,
}

impl Entry {
    pub(super) fn of(claim: &Claim) -> Self {
        Self {
            mode: claim.mode,
            client: Arc::clone(&claim.client),
            offer: None,
        }
    }
}

/// A free lock that is kept for one waiter.
#[derive(Clone, Debug)]
struct Reservation {
    ticket: Ticket,
    entry: Entry,
    end: BootInstant,
}

/// What a step of the queue needs from outside: the key, the time, and a voice.
pub(super) struct Step<'a> {
    pub(super) key: &'a Key,
    pub(super) now: BootInstant,
    /// Says whether the hint was heard.
    pub(super) tell: &'a mut dyn FnMut(Hint) -> bool,
}

impl Step<'_> {
    fn tell(&mut self, waiter: Owner, word: Word) -> bool {
        self.tell_of(None, waiter, word)
    }

    /// Says a word about this permit.
    fn tell_of(&mut self, slot: Option<Slot>, waiter: Owner, word: Word) -> bool {
        (self.tell)(Hint {
            key: self.key.clone(),
            waiter,
            word,
            slot,
        })
    }
}

impl Queue {
    /// How long an entry is kept if nobody asks for the key in turn.
    pub(super) const KEPT: Duration = Duration::from_secs(30);

    /// Drops what is over.
    pub(super) fn expire(&mut self, now: BootInstant) {
        self.reserved.take_if(|reserved| reserved.end <= now);
        self.gap.take_if(|end| *end <= now);
        self.shows.take_if(|end| *end <= now);
        if self.kept_until.take_if(|end| *end <= now).is_some() {
            self.entries.clear();
            self.offered.clear();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn is_reserved(&self) -> bool {
        self.reserved.is_some()
    }

    pub(super) fn has_gap(&self) -> bool {
        self.gap.is_some()
    }

    /// For how long the reservation keeps others out, or else the gap.
    pub(super) fn rest(&self, now: BootInstant) -> Option<Duration> {
        let reserved = self.reserved.as_ref().map(|reserved| reserved.end);
        reserved.or(self.gap).map(|end| end.since(now))
    }

    /// Whether `ticket` may take what is reserved: for its own waiter, or for a younger one.
    pub(super) fn yields_to(&self, ticket: Ticket) -> bool {
        self.reserved.as_ref().is_some_and(|reserved| {
            reserved.ticket.waiter == ticket.waiter || ticket < reserved.ticket
        })
    }

    pub(super) fn has_older(&self, ticket: Ticket) -> bool {
        self.entries.range(..ticket).next().is_some()
    }

    /// The rank of a waiter, 1 being next.
    pub(super) fn place(&self, waiter: Owner) -> Option<u64> {
        let index = self.entries.keys().position(|it| it.waiter == waiter)?;
        u64::try_from(index + 1).ok()
    }

    /// All who wait, in order, the one with the reservation first.
    pub(super) fn waiters(&self) -> Vec<Waiter> {
        let first = self.reserved.iter().map(|it| (&it.ticket, &it.entry));
        let all = first.chain(&self.entries);
        all.map(|(ticket, entry)| {
            let mut waiter = Waiter::unknown(*ticket, entry.mode);
            waiter.client = Some((*entry.client).clone());
            waiter
        })
        .collect()
    }

    /// The client lives: what it was offered does not count against it any more.
    pub(super) fn hear_of(&mut self, client: ClientId) {
        self.offered.remove(&client);
    }

    /// Puts a waiter where its ticket says, unless the lock is reserved for it.
    pub(super) fn enqueue(&mut self, ticket: Ticket, entry: Entry, now: BootInstant) {
        self.kept_until = Some(now + Self::KEPT);
        if !self.is_reserved_for(ticket.waiter) {
            self.remove(ticket.waiter);
            self.entries.insert(ticket, entry);
        }
    }

    /// Clears the way for a grant: its waiter waits no more, and one that had the reservation
    /// waits again.
    pub(super) fn make_way(&mut self, waiter: Option<Owner>, now: BootInstant) {
        if let Some(waiter) = waiter {
            self.remove(waiter);
        }
        if let Some(reserved) = self.reserved.take()
            && Some(reserved.ticket.waiter) != waiter
        {
            self.enqueue(reserved.ticket, reserved.entry, now);
        }
    }

    /// Reserves the free lock for the oldest waiter that hears of it; `true` if the choice falls on
    /// `asking`, who is there and need not be told.
    pub(super) fn hand_over(&mut self, asking: Option<Ticket>, step: &mut Step<'_>) -> bool {
        if let Some(end) = self.gap {
            // Somebody had it meanwhile: those who asked then learned when that one's lease would end.
            self.tell_of_gap(end.since(step.now), step);
            return false;
        }
        while let Some((ticket, entry)) = self.entries.pop_first() {
            let client = ticket.waiter.client();
            if self.is_late(client, step.now) {
                self.drop_client(client);
            } else if asking == Some(ticket) {
                self.entries.insert(ticket, entry);
                return true;
            } else if step.tell(ticket.waiter, Word::YourTurn) {
                let end = step.now + RESERVATION;
                // What it has not answered before decides when it is late; nothing is kept for it
                // beyond that, or one that is dead costs that time twice.
                let end = *self.offered.entry(client).or_insert(end);
                self.reserved = Some(Reservation { ticket, entry, end });
                self.kept_until = Some(step.now + Self::KEPT);
                let other =
                    |it: &Ticket, _: &Entry| it.waiter.client() != client && asking != Some(*it);
                self.tell_soon(1, end.since(step.now), other, step);
                return false;
            }
        }
        false
    }

    /// Leaves the free lock to those who poll, for `span`, if anybody would be in their way.
    pub(super) fn leave_free(&mut self, span: Duration, step: &mut Step<'_>) {
        if !self.entries.is_empty() {
            self.gap = Some(step.now + span);
            self.tell_of_gap(span, step);
        }
    }

    /// Tells the first, and one of another client, when the free lock is theirs: the first may be dead,
    /// and nobody else would know when the time is over.
    fn tell_of_gap(&mut self, rest: Duration, step: &mut Step<'_>) {
        let Some(head) = self.entries.keys().next().map(|it| it.waiter.client()) else {
            return;
        };
        self.tell_soon(1, rest, |it, _| it.waiter.client() == head, step);
        self.tell_soon(1, rest, |it, _| it.waiter.client() != head, step);
    }

    /// Takes a waiter out; what was reserved for it, or is free, is handed over, and those who moved
    /// up are told when it is worth trying. `rest` is what is left of the leases.
    pub(super) fn leave(&mut self, waiter: Owner, rest: Option<Duration>, step: &mut Step<'_>) {
        self.hear_of(waiter.client());
        if self.is_reserved_for(waiter) {
            self.reserved = None;
            self.hand_over(None, step);
            return;
        }
        let place = self.place(waiter);
        self.remove(waiter);
        match rest.or(self.rest(step.now)) {
            None => {
                self.hand_over(None, step);
            }
            Some(rest) => self.move_up(place, rest, step),
        }
    }

    /// One that stood at `place` is gone: whoever is at the front now learns when to try.
    fn move_up(&mut self, place: Option<u64>, rest: Duration, step: &mut Step<'_>) {
        if place.is_some_and(|place| place <= 2) {
            self.tell_soon(2, rest, |_, _| true, step);
        }
    }

    /// Tells the first `count` who hear that they are next, of the waiters that `concerns` names and
    /// whose clients are not late.
    fn tell_soon(
        &mut self,
        count: usize,
        remaining: Duration,
        concerns: impl Fn(&Ticket, &Entry) -> bool,
        step: &mut Step<'_>,
    ) {
        let mut told = 0;
        let concerned = self
            .entries
            .iter()
            .filter(|(it, entry)| concerns(it, entry));
        let tickets: Vec<Ticket> = concerned.map(|(ticket, _)| *ticket).collect();
        for ticket in tickets {
            if told == count {
                return;
            }
            if self.is_late(ticket.waiter.client(), step.now) {
                continue;
            }
            if step.tell(ticket.waiter, Word::Soon { remaining }) {
                told += 1;
            } else {
                self.entries.remove(&ticket);
            }
        }
    }

    fn is_reserved_for(&self, waiter: Owner) -> bool {
        let reserved = self.reserved.as_ref();
        reserved.is_some_and(|reserved| reserved.ticket.waiter == waiter)
    }

    /// Whether a client was offered the lock, or asked to show itself, and has not been heard of since.
    fn is_late(&self, client: ClientId, now: BootInstant) -> bool {
        self.offered.get(&client).is_some_and(|end| *end <= now)
    }

    fn drop_client(&mut self, client: ClientId) {
        self.entries.retain(|it, _| it.waiter.client() != client);
    }

    fn remove(&mut self, waiter: Owner) {
        self.entries.retain(|ticket, _| ticket.waiter != waiter);
    }
}
