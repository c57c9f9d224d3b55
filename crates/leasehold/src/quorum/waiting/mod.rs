//! Waiting in the members' queues: who waits, what the members tell, and when to try again.
//!
//! `board` and `tickets` decide, `vigil` is one wait, and this table brings what is heard to the
//! wait that it concerns.

mod board;
mod heirs;
mod lately;
mod reserve;
mod stage;
#[cfg(test)]
mod tests;
mod tickets;
mod vigil;
mod vigils;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, mpsc};

use crate::ambient::Ambient;
use crate::attempt::Busy;
use crate::background;
use crate::claim::{Claim, Mode};
use crate::clock::{BootInstant, WallTime};
use crate::key::Key;
use crate::owner::{ClientId, Owner};
use crate::permits::{Permits, Slot};
use crate::queue::{Departure, Hint, Ticket, Wait, Word};
use crate::quorum::link::Link;
use crate::quorum::slots::Picks;
use lately::Lately;
use tickets::Tickets;
use vigil::Concern;
use vigils::Vigils;

pub(crate) use reserve::Reserve;
pub(crate) use stage::Held;
pub(crate) use vigil::Vigil;

/// The waits of a quorum's clients.
#[derive(Debug)]
pub(crate) struct Waits {
    ambient: Ambient,
    members: usize,
    /// How long a lock is now and then left free for those who poll; `None`: never.
    gap: Option<Duration>,
    state: Mutex<State>,
    errands: mpsc::UnboundedSender<Errand>,
}

#[derive(Debug)]
struct State {
    vigils: Vigils,
    tickets: Tickets,
    lately: Lately,
    /// The clients that wait, or waited, here.
    clients: HashSet<ClientId>,
    picks: Picks,
    /// The fences that leases have for their heirs, by the owner of the lease.
    reserves: HashMap<Owner, Arc<Reserve>>,
}

/// What is to be done about a hint, on the runtime of the client that it reached.
#[derive(Debug)]
pub(crate) enum Errand {
    /// It is not needed here: the next one in the queue is to have it.
    PassOn(usize, Hint),
    /// The lock, which is held elsewhere, is to be had there too.
    TakeToo(usize, Held, Arc<Vigil>),
}

/// What hints ask for; locked by whoever sees to it.
pub(crate) type Errands = tokio::sync::Mutex<mpsc::UnboundedReceiver<Errand>>;

impl Waits {
    pub(crate) fn new(
        members: usize,
        gap: Option<Duration>,
        ambient: Ambient,
    ) -> (Arc<Self>, Arc<Errands>) {
        let (errands, inbox) = mpsc::unbounded_channel();
        let waits = Self {
            ambient,
            members,
            gap,
            state: Mutex::new(State {
                vigils: Vigils::default(),
                tickets: Tickets::new(members),
                lately: Lately::default(),
                clients: HashSet::new(),
                picks: Picks::default(),
                reserves: HashMap::new(),
            }),
            errands,
        };
        (Arc::new(waits), Arc::new(Errands::new(inbox)))
    }

    /// A member's clock showed `clock` in an answer to a request that was sent at `sent`.
    pub(crate) fn read_clock(&self, member: usize, clock: WallTime, sent: BootInstant) {
        let now = self.ambient.clock.now();
        self.state().tickets.read(member, clock, sent, now);
    }

    /// The wait of `waiter`, if it is in the queue, or should go straight into it.
    pub(crate) fn in_turn(&self, waiter: Owner, key: &Key) -> Option<Arc<Vigil>> {
        let now = self.ambient.clock.now();
        let mut state = self.state();
        if let Some(vigil) = state.vigils.get(waiter) {
            return Some(vigil);
        }
        if !state.lately.was_busy(key, now) {
            return None;
        }
        let ticket = state.tickets.draw(waiter, now)?;
        Some(self.begin(&mut state, key, ticket))
    }

    /// The lock was found busy by an attempt without a place in the queue: from now on `waiter` has
    /// one.
    pub(crate) fn enter(&self, waiter: Owner, key: &Key) {
        let now = self.ambient.clock.now();
        let mut state = self.state();
        if state.vigils.get(waiter).is_none() {
            // Servers that do not tell the time leave only our own.
            let ticket = state.tickets.draw(waiter, now).unwrap_or(Ticket {
                since: self.ambient.clock.wall(),
                waiter,
            });
            self.begin(&mut state, key, ticket);
        }
    }

    fn begin(&self, state: &mut State, key: &Key, ticket: Ticket) -> Arc<Vigil> {
        let vigil = Vigil::new(key.clone(), ticket, self.members);
        let vigil = Arc::new(vigil);
        state.clients.insert(ticket.waiter.client());
        state.vigils.insert(&vigil);
        vigil
    }

    /// The wait of `waiter`, if it has a place in the queue.
    pub(crate) fn of(&self, waiter: Owner) -> Option<Arc<Vigil>> {
        self.state().vigils.get(waiter)
    }

    /// Resolves when another attempt of `waiter` is due; at once for one that has no place yet.
    pub(crate) async fn due(&self, waiter: Owner) {
        if let Some(vigil) = self.of(waiter) {
            vigil.due(&self.ambient).await;
        }
    }

    /// Notes that a lock was busy.
    pub(crate) fn note_busy(&self, key: &Key, busy: &Busy) {
        let now = self.ambient.clock.now();
        self.state().lately.note(key, busy, now);
    }

    /// The permit that all members are to be asked for: by what they told the wait, or else by how
    /// they refused the last attempt of anybody here.
    pub(crate) fn pick(&self, claim: &Claim, permits: Permits) -> Slot {
        let (now, random) = (self.ambient.clock.now(), self.ambient.entropy.next_u64());
        let vigil = match claim.wait {
            Wait::InTurn(waiter) => self.of(waiter),
            Wait::None | Wait::Barging => None,
        };
        let mut said = vigil.map(|vigil| vigil.said()).unwrap_or_default();
        let mut state = self.state();
        if let Some(slot) = state.picks.of(claim.owner) {
            return slot;
        }
        let known = state.lately.free(&claim.key, now);
        if let Some(free) = known.as_deref().filter(|_| said.is_empty()) {
            said.free.push(*free);
        }
        let slot = said.choose(permits, self.members, random);
        if let Some(free) = known {
            free.remove(slot);
        }
        state.picks.note(claim.owner, slot);
        slot
    }

    /// What becomes of a lock that its holder gives back.
    pub(crate) fn departure(&self, claim: &Claim) -> Departure {
        let (Some(gap), Wait::InTurn(_)) = (self.gap, claim.wait) else {
            return Departure::HandOver;
        };
        let now = self.ambient.clock.now();
        let silent = self.state().lately.silent(&claim.key);
        let others_seen = silent.is_some_and(|at| now.since(at) < OTHERS_LATELY);
        let every = if others_seen {
            GAP_EVERY_SEEN
        } else {
            GAP_EVERY
        };
        // Each attempt says when it began. Of all that hold a lock in turn, one holds it when such a
        // period ends, or takes it over just then: so nothing need be counted or agreed upon.
        let period = |micros: u64| u128::from(micros) / every.as_micros();
        let slack = u64::try_from(gap.as_micros() / 2).unwrap_or(u64::MAX);
        let began = claim.proposal.as_micros().saturating_sub(slack);
        if period(began) == period(self.ambient.clock.wall().as_micros()) {
            Departure::HandOver
        } else {
            Departure::LeaveFree(gap)
        }
    }

    /// A lock is about to be given back. Where nobody is before the first of those who wait for it at the
    /// same client, that one is called: it asks without waiting for a word, and so behind the release.
    /// Waiters of another client run on another thread, and could be in front of it.
    pub(crate) fn call_next(&self, claim: &Claim, departure: Departure) {
        if claim.mode == Mode::Exclusive && departure == Departure::HandOver {
            let now = self.ambient.clock.now();
            let state = self.state();
            state
                .vigils
                .call_next(&claim.key, claim.owner.client(), now);
        }
    }

    /// The wait was granted the lock, and holds it. What members told it while that was being decided
    /// is a hand-over that came late, as what they tell from now on.
    pub(crate) fn granted(&self, vigil: &Vigil) {
        self.state().vigils.granted(vigil);
        for (member, turn) in vigil.turns() {
            self.hear(member, turn);
        }
    }

    /// The wait was refused, and told its place.
    pub(crate) fn refused(&self, vigil: &Vigil) {
        self.state().vigils.refused(vigil);
    }

    /// What is heard at a member; says whether it concerns a client of this quorum.
    pub(crate) fn hear(&self, member: usize, hint: Hint) -> bool {
        let vigil = {
            let state = self.state();
            if !state.clients.contains(&hint.waiter.client()) {
                return false;
            }
            state.vigils.get(hint.waiter)
        };
        let concern = match &vigil {
            Some(vigil) => vigil.hear(member, &hint, &self.ambient),
            None => Concern::Over,
        };
        let errand = match (concern, hint.word, vigil) {
            (Concern::Holds(held), Word::YourTurn, Some(vigil)) => {
                Errand::TakeToo(member, held, vigil)
            }
            (Concern::Over, ..) => Errand::PassOn(member, hint),
            _ => return true,
        };
        // Without anybody to run it the quorum is gone; the reservation lapses.
        let _ = self.errands.send(errand);
        true
    }

    /// Nothing is heard from a member any more.
    pub(crate) fn deaf(&self, member: usize) {
        let vigils = self.state().vigils.all();
        for vigil in vigils {
            vigil.deaf(member, &self.ambient);
        }
    }

    /// Nobody waits as `waiter` any more. Gives the wait if it is over; where the lock is held, its
    /// places in queues may still earn it the members that are late.
    pub(crate) fn leave(&self, waiter: Owner) -> Option<Arc<Vigil>> {
        self.of(waiter)
            .filter(|vigil| vigil.leave() && self.end(vigil))
    }

    /// What a wait was granted is now held as `claim`.
    pub(crate) fn held_as(&self, claim: &Arc<Claim>) {
        if let (Wait::InTurn(waiter), Mode::Shared) = (claim.wait, claim.mode)
            && let Some(vigil) = self.of(waiter)
        {
            vigil.held_as(claim);
        }
    }

    /// A grant is given back. Gives the wait if with that it is over.
    pub(crate) fn give_back(&self, waiter: Owner, claim: &Claim) -> Option<Arc<Vigil>> {
        self.of(waiter)
            .filter(|vigil| vigil.give_back(claim) && self.end(vigil))
    }

    fn end(&self, vigil: &Vigil) -> bool {
        self.state().vigils.remove(vigil)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change under the mutex is a single step; a panic elsewhere leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does what hints ask for, until the quorum is gone.
pub(crate) async fn run_errands(
    links: Vec<Weak<Link>>,
    mut errands: OwnedMutexGuard<mpsc::UnboundedReceiver<Errand>>,
) {
    while let Some(errand) = errands.recv().await {
        let (Errand::PassOn(place, _) | Errand::TakeToo(place, ..)) = &errand;
        let Some(link) = links[*place].upgrade() else {
            return;
        };
        // Beside one another: one member's silence must not hold up the others.
        background::spawn(async move {
            match errand {
                Errand::PassOn(_, hint) => link.pass_on(hint).await,
                Errand::TakeToo(_, held, vigil) => link.take_too(held, vigil).await,
            }
        });
    }
}

/// How often a lock that is handed over all the time is left free for a moment: whoever polls, and
/// is not seen until it wins, wins sooner or later. And how often while such clients were seen to
/// hold it lately.
const GAP_EVERY: Duration = Duration::from_secs(5);
const GAP_EVERY_SEEN: Duration = Duration::from_secs(1);
const OTHERS_LATELY: Duration = Duration::from_secs(10 * 60);
