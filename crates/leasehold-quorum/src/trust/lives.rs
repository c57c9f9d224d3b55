use std::time::Duration;

use crate::trust::distrust::{Distrust, Forgetting};
use leasehold::clock::{BootInstant, WallTime};
use leasehold::{Card, Life};
use leasehold::{MemberId, Presence};

/// What a member said of itself, and when that came.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) presence: Presence,
    pub(crate) received: BootInstant,
    /// Counts what we were told by any member: what is younger has the greater number.
    pub(crate) order: u64,
}

/// Since when we have seen a member in its present life, by our own clock.
#[derive(Clone, Copy, Debug)]
struct Seen {
    life: Life,
    first: BootInstant,
    last: BootInstant,
    /// When we last saw it in another life.
    other_until: Option<BootInstant>,
}

/// When a member's life began, at the latest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    /// In nanoseconds, as a [`BootInstant`] counts them.
    at: i128,
    /// It is the member's first: an operator initialized the quorum and so said that nothing was held before.
    has_no_past: bool,
}

/// Who may have forgotten leases ("delayed restarts", done by the clients: Redis documentation,
/// "Distributed Locks with Redis", performance, crash recovery and fsync).
///
/// A member counts once it can be shown to have remembered everything for the longest TTL and a
/// second: by our own clock if we saw it for so long; else by its own clock, unless a witness, or
/// we ourselves, saw its life change later than that clock says.
#[derive(Debug)]
pub(crate) struct Lives {
    wait: Duration,
    seen: Vec<Option<Seen>>,
}

impl Lives {
    pub(crate) fn new(members: usize, max_ttl: Duration) -> Self {
        Self {
            wait: wait_of(max_ttl),
            seen: vec![None; members],
        }
    }

    pub(crate) fn present(&mut self, member: usize, known: &Known) {
        let Some(life) = known.presence.card.as_ref().map(|card| card.life) else {
            return;
        };
        let now = known.received;
        let seen = &mut self.seen[member];
        match seen {
            Some(seen) if life.continues(seen.life) => (seen.life, seen.last) = (life, now),
            _ => {
                *seen = Some(Seen {
                    life,
                    first: now,
                    last: now,
                    other_until: seen.map(|seen| seen.last),
                });
            }
        }
    }

    /// From when on the answers of a member count whose life began so: those to requests that were sent then,
    /// or later.
    pub(crate) fn counts_from(&self, began: Beginning) -> BootInstant {
        instant(began.at + whole(self.wait))
    }

    /// Whether a member whose life began so still has, at `sent`, all that it was to keep for `retention`.
    pub(crate) fn remembers(
        &self,
        began: Beginning,
        sent: BootInstant,
        retention: Duration,
    ) -> Result<(), Distrust> {
        // A member that joined was given the age that leases ask for.
        let until = began.at + whole(retention + 2 * self.wait);
        if began.has_no_past || nanos(sent) >= until {
            return Ok(());
        }
        let until = instant(until);
        Err(Distrust::Young {
            age: sent.since(instant(began.at)),
            left: until.since(sent),
            until,
        })
    }

    /// When the present life of `member` began, at the latest. `witnesses`: the others whose clocks can be
    /// believed.
    pub(crate) fn began<'a>(
        &self,
        member: usize,
        id: &MemberId,
        known: Option<&Known>,
        witnesses: impl Iterator<Item = &'a Known>,
    ) -> Result<Beginning, Distrust> {
        let forgot = |what| Err(Distrust::Forgot { what, until: None });
        let Some(known) = known else {
            return Err(Distrust::Unknown);
        };
        let Some(card) = &known.presence.card else {
            return forgot(Forgetting::LostCard);
        };
        if !known.presence.remembers() {
            return forgot(match known.presence.was_replica {
                true => Forgetting::WasReplica,
                false => Forgetting::Restarted,
            });
        }
        let Some(seen) = self.seen[member].filter(|seen| seen.life == card.life) else {
            return Err(Distrust::Unknown);
        };
        let testimony = Testimony::of(id, card.life, witnesses);
        let mut began = testimony.began(known, card, seen);
        let is_contradicted = seen.other_until.is_some_and(|other| began <= nanos(other));
        if is_contradicted {
            // We saw the life before it at a time when this one is said to have begun already.
            began = nanos(seen.first);
        }
        let is_first = !is_contradicted && !testimony.change;
        Ok(Beginning {
            at: began.min(nanos(seen.first)),
            has_no_past: is_first && card.generation == 1 && card.since.as_micros() == 0,
        })
    }
}

/// What the witnesses say of one life.
#[derive(Debug, Default)]
struct Testimony {
    /// When the first of them heard of it.
    earliest: Option<i128>,
    /// Whether one of them knew, or still knows, an earlier life.
    change: bool,
}

impl Testimony {
    fn of<'a>(id: &MemberId, life: Life, witnesses: impl Iterator<Item = &'a Known>) -> Self {
        let mut testimony = Self::default();
        for witness in witnesses {
            let presence = &witness.presence;
            let card = presence.card.as_ref();
            let Some(sighting) = card.and_then(|card| card.sightings.get(id)) else {
                continue;
            };
            let is_this_life = life.continues(sighting.life);
            testimony.change |= sighting.changed || !is_this_life;
            // A time that its clock has yet to reach, having been set back, says nothing.
            if is_this_life && sighting.at <= presence.clock {
                let at = ago(witness.received, presence.clock, sighting.at);
                testimony.earliest =
                    Some(testimony.earliest.map_or(at, |earliest| earliest.min(at)));
            }
        }
        testimony
    }

    /// No later than this did the life begin: what the member's own clock says, unless witnesses
    /// saw it change. They may have heard late of it, so the first one is right.
    fn began(&self, known: &Known, card: &Card, seen: Seen) -> i128 {
        let clock = known.presence.clock;
        let own = (card.since <= clock).then(|| ago(known.received, clock, card.since));
        let witnessed = self.earliest.unwrap_or_else(|| nanos(seen.first));
        match own {
            Some(own) if self.change => own.max(witnessed),
            Some(own) => own,
            None => witnessed,
        }
    }
}

/// How long a member must wait that may have forgotten leases.
pub(crate) fn wait_of(max_ttl: Duration) -> Duration {
    max_ttl + Duration::from_secs(1)
}

/// The age of a life that nobody needs to wait for, with room for an answer's way.
pub(crate) fn old_enough(max_ttl: Duration) -> Duration {
    2 * wait_of(max_ttl)
}

/// Our instant for a time of a member's clock, which showed `clock` at `received`: in nanoseconds, since it
/// may lie before the boot of our machine.
fn ago(received: BootInstant, clock: WallTime, then: WallTime) -> i128 {
    let micros = clock.as_micros().saturating_sub(then.as_micros());
    nanos(received) - i128::from(micros) * 1_000
}

fn nanos(instant: BootInstant) -> i128 {
    i128::from(instant.as_nanos())
}

fn whole(span: Duration) -> i128 {
    i128::try_from(span.as_nanos()).unwrap_or(i128::MAX)
}

/// The instant that `nanos` says, or the nearest one there is.
fn instant(nanos: i128) -> BootInstant {
    BootInstant::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}
