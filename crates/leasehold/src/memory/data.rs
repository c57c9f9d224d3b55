use std::collections::BTreeMap;

use crate::ambient::Entropy;
use crate::attempt::{LostReason, Renewal};
use crate::card::{Card, CardEdit, Life, RunId, Sighting};
use crate::claim::{Claim, Held, Mode};
use crate::clock::{BootInstant, WallTime};
use crate::error::{Error, ErrorKind};
use crate::fence::Fence;
use crate::holder::Holder;
use crate::key::Key;
use crate::member::{Incarnation, MemberId, Sample};

/// What a memory store holds: its locks, and what a server has beside them.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) slots: BTreeMap<Key, Slot>,
    pub(super) card: Option<Card>,
    pub(super) run: RunId,
    /// When this run began; `None` in the first one, which has no past.
    pub(super) restarted: Option<BootInstant>,
    pub(super) durable: bool,
}

impl Data {
    pub(super) fn new(entropy: &dyn Entropy) -> Self {
        Self {
            slots: BTreeMap::new(),
            card: None,
            run: draw_run(entropy),
            restarted: None,
            durable: false,
        }
    }

    pub(super) fn forget(&mut self, now: BootInstant) {
        self.slots.clear();
        self.card = None;
        // From now on it has a past.
        self.restarted.get_or_insert(now);
    }

    /// Brings back the locks and the card of `then`.
    pub(super) fn roll_back(&mut self, then: &Self) {
        self.slots.clone_from(&then.slots);
        self.card.clone_from(&then.card);
    }

    pub(super) fn restart(&mut self, now: BootInstant, entropy: &dyn Entropy) {
        self.run = draw_run(entropy);
        self.restarted = Some(now);
    }

    /// The slot of `key`, from which expired leases are gone.
    pub(super) fn slot(&mut self, key: &Key, now: BootInstant) -> &mut Slot {
        let slot = self.slots.entry(key.clone()).or_default();
        slot.leases.retain(|lease| now < lease.end);
        slot
    }

    pub(super) fn sample(&self, clock: WallTime) -> Sample {
        let mark = self.card.as_ref().map(Card::mark);
        Sample {
            clock,
            incarnation: Incarnation::new(&self.run, mark.as_ref()),
        }
    }

    pub(super) fn write_card(&mut self, edit: &CardEdit, clock: WallTime) -> bool {
        let old = self.card.take();
        if old.as_ref().map(Card::mark) != edit.expected {
            self.card = old;
            return false;
        }
        let same_generation = old
            .as_ref()
            .filter(|card| card.generation == edit.generation);
        let began = edit.age.map(|age| {
            let age = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
            WallTime::from_micros(clock.as_micros().saturating_sub(age))
        });
        self.card = Some(Card {
            set: edit.set.clone(),
            generation: edit.generation,
            changed: same_generation.map_or(clock, |card| card.changed),
            life: edit.life,
            since: began
                .or(old.as_ref().map(|card| card.since))
                .unwrap_or(clock),
            run: edit.run.clone(),
            durable: edit.durable,
            sightings: old.map(|card| card.sightings).unwrap_or_default(),
        });
        self.witness(&edit.seen, clock);
        true
    }

    pub(super) fn witness(&mut self, seen: &[(MemberId, Life)], clock: WallTime) {
        let Some(card) = &mut self.card else { return };
        for (id, life) in seen {
            let known = card.sightings.get(id);
            if known.is_some_and(|known| known.life == *life) {
                continue;
            }
            let sighting = Sighting {
                life: *life,
                at: clock,
                changed: known.is_some(),
            };
            card.sightings.insert(id.clone(), sighting);
        }
    }
}

fn draw_run(entropy: &dyn Entropy) -> RunId {
    RunId::new(format!("{:016x}", entropy.next_u64()))
}

/// All that is known of one key.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    /// The greatest fence ever granted or sealed. Outlives every lease.
    pub(super) counter: u64,
    pub(super) leases: Vec<Lease>,
}

#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) claim: Claim,
    pub(super) fence: Fence,
    pub(super) end: BootInstant,
}

impl Slot {
    /// The lease that keeps `claim` out, if one does.
    pub(super) fn blocking(&self, claim: &Claim) -> Option<&Lease> {
        self.leases
            .iter()
            .find(|lease| claim.mode == Mode::Exclusive || lease.claim.mode == Mode::Exclusive)
    }

    pub(super) fn grant(&mut self, claim: &Claim, now: BootInstant) -> Result<Fence, Error> {
        let fence = self.next_fence(claim)?;
        self.leases.push(Lease {
            claim: claim.clone(),
            fence,
            end: now + claim.ttl,
        });
        Ok(fence)
    }

    pub(super) fn renew(&mut self, claim: &Claim, now: BootInstant) -> Renewal {
        if let Some(lease) = self.lease_of(claim) {
            lease.end = lease.end.max(now + claim.ttl);
            Renewal::Renewed
        } else if self.leases.is_empty() {
            Renewal::Lost(LostReason::Gone)
        } else {
            Renewal::Lost(LostReason::Taken)
        }
    }

    pub(super) fn heal(&mut self, held: &Held, now: BootInstant) {
        if held.claim.mode == Mode::Exclusive && self.leases.is_empty() {
            self.counter = self.counter.max(held.fence.get());
            self.leases.push(Lease {
                claim: (*held.claim).clone(),
                fence: held.fence,
                end: now + held.claim.ttl,
            });
        }
    }

    pub(super) fn lease_of(&mut self, claim: &Claim) -> Option<&mut Lease> {
        self.leases
            .iter_mut()
            .find(|lease| lease.claim.owner == claim.owner)
    }

    fn next_fence(&mut self, claim: &Claim) -> Result<Fence, Error> {
        let next = self
            .counter
            .max(claim.proposal.as_micros())
            .saturating_add(1);
        let fence = Fence::new(next)
            .filter(|fence| *fence <= Fence::MAX)
            .ok_or_else(|| {
                let text = format!("fence {next} is out of bounds: at most {}", Fence::MAX);
                Error::new(ErrorKind::Corrupt, text).with_key(&claim.key)
            })?;
        self.counter = next;
        Ok(fence)
    }
}

impl Lease {
    pub(super) fn holder(&self, now: BootInstant) -> Holder {
        let mut holder = Holder::unknown(self.claim.mode);
        holder.owner = Some(self.claim.owner);
        holder.client = Some((*self.claim.client).clone());
        holder.fence = Some(self.fence);
        holder.remaining = Some(self.end.since(now));
        holder
    }
}
