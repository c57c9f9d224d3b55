use std::time::Duration;

use crate::card::{Card, Life};
use crate::clock::{BootInstant, WallTime};
use crate::member::{MemberId, Presence};
use crate::quorum::trust::distrust::{Distrust, Forgetting};

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
            Some(seen) if seen.life == life => seen.last = now,
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

    /// Whether we ever saw the member with a card.
    pub(crate) fn has_seen(&self, member: usize) -> bool {
        self.seen[member].is_some()
    }

    /// Whether an answer of `member` to a request sent at `sent` counts.
    pub(crate) fn verdict(
        &self,
        member: usize,
        id: &MemberId,
        known: &[Option<Known>],
        sent: BootInstant,
    ) -> Result<(), Distrust> {
        let forgot = |what, until| Err(Distrust::Forgot { what, until });
        let Some(Known {
            presence, received, ..
        }) = &known[member]
        else {
            return Err(Distrust::Unknown);
        };
        let Some(card) = &presence.card else {
            return forgot(Forgetting::LostCard, None);
        };
        if card.run != presence.run && !card.durable {
            return forgot(Forgetting::Restarted, None);
        }
        let Some(seen) = self.seen[member].filter(|seen| seen.life == card.life) else {
            return Err(Distrust::Unknown);
        };
        let proven = seen.first + self.wait;
        let mut began = ago(*received, presence.clock, card.since);
        for witness in known
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != member)
        {
            if let (_, Some(witness)) = witness {
                began = began.max(
                    change_seen_by(witness, id, card)
                        .unwrap_or(began)
                        .min(seen.first),
                );
            }
        }
        if seen.other_until.is_some_and(|other| began <= other) {
            // We saw the life before it at a time when this one is said to have begun already.
            began = seen.first;
        }
        let until = proven.min(began + self.wait);
        if sent < until {
            return forgot(Forgetting::NewLife, Some(until));
        }
        Ok(())
    }
}

/// How long a member must wait that may have forgotten leases.
pub(crate) fn wait_of(max_ttl: Duration) -> Duration {
    max_ttl + Duration::from_secs(1)
}

/// When, by our clock, `witness` saw the life of `id` begin; the end of time if it knows another.
fn change_seen_by(witness: &Known, id: &MemberId, card: &Card) -> Option<BootInstant> {
    let theirs = witness.presence.card.as_ref()?;
    let sighting = theirs.sightings.get(id)?;
    if sighting.life != card.life {
        return Some(BootInstant::from_nanos(u64::MAX));
    }
    sighting
        .changed
        .then(|| ago(witness.received, witness.presence.clock, sighting.at))
}

/// Our instant for a time of a member's clock, which showed `clock` at `received`.
fn ago(received: BootInstant, clock: WallTime, then: WallTime) -> BootInstant {
    received - Duration::from_micros(clock.as_micros().saturating_sub(then.as_micros()))
}
