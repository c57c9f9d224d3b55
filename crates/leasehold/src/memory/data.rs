use std::collections::BTreeMap;

use super::record_table::RecordTable;
use super::slot::Slot;
use crate::ambient::Entropy;
use crate::card::{Card, CardEdit, Life, RunId, Sighting};
use crate::clock::{BootInstant, WallTime};
use crate::key::Key;
use crate::member::{Incarnation, MemberId, Sample};

/// What a memory store holds: its locks, and what a server has beside them.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) slots: BTreeMap<Key, Slot>,
    pub(super) records: RecordTable,
    pub(super) card: Option<Card>,
    pub(super) run: RunId,
    /// When this run began; `None` in the first one, which has no past.
    pub(super) restarted: Option<BootInstant>,
    pub(super) durable: bool,
    shown: Option<Shown>,
}

/// What answers show while neither the run nor the card is another.
#[derive(Clone, Debug)]
struct Shown {
    run: RunId,
    card: Option<(Life, u64)>,
    incarnation: Incarnation,
}

impl Data {
    pub(super) fn new(entropy: &dyn Entropy) -> Self {
        Self {
            slots: BTreeMap::new(),
            records: RecordTable::default(),
            card: None,
            run: draw_run(entropy),
            restarted: None,
            durable: false,
            shown: None,
        }
    }

    pub(super) fn forget(&mut self, now: BootInstant) {
        self.slots.clear();
        self.records = RecordTable::default();
        self.card = None;
        // From now on it has a past.
        self.restarted.get_or_insert(now);
    }

    /// Brings back the locks, the records and the card of `then`.
    pub(super) fn roll_back(&mut self, then: &Self) {
        self.slots.clone_from(&then.slots);
        self.records.clone_from(&then.records);
        self.card.clone_from(&then.card);
    }

    pub(super) fn restart(&mut self, now: BootInstant, entropy: &dyn Entropy) {
        self.run = draw_run(entropy);
        self.restarted = Some(now);
    }

    /// The slot of `key`, without what is over.
    pub(super) fn slot(&mut self, key: &Key, now: BootInstant) -> &mut Slot {
        let slot = self.slots.entry(key.clone()).or_default();
        slot.expire(now);
        slot
    }

    pub(super) fn sample(&mut self, clock: WallTime) -> Sample {
        let card = self.card.as_ref().map(|card| (card.life, card.generation));
        let run = &self.run;
        let as_before = |shown: &Shown| shown.run == *run && shown.card == card;
        let shown = self.shown.take().filter(as_before).unwrap_or_else(|| {
            let mark = self.card.as_ref().map(Card::mark);
            Shown {
                run: run.clone(),
                card,
                incarnation: Incarnation::new(run, mark.as_ref()),
            }
        });
        let incarnation = self.shown.insert(shown).incarnation.clone();
        Sample { clock, incarnation }
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
            let known = card.sightings.get(id).copied();
            if let Some(sighting) = Sighting::noted(known, *life, clock) {
                card.sightings.insert(id.clone(), sighting);
            }
        }
    }
}

fn draw_run(entropy: &dyn Entropy) -> RunId {
    RunId::new(format!("{:016x}", entropy.next_u64()))
}
