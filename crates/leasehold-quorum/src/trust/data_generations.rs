use std::time::Duration;

use crate::member::index::{MemberIndex, PerMember};
use crate::trust::untrusted::{Forgetting, UntrustedReason};
use leasehold_types::{
    BootInstant, DataGeneration, MemberId, MemberRecord, MemberStatus, WallTime,
};
use typed_index_collections::ti_vec;

/// What a member reported about itself, and when the report arrived.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) status: MemberStatus,
    pub(crate) received: BootInstant,
}

/// The span in which this client has seen a member in its present data generation, by the client's clock.
#[derive(Clone, Copy, Debug)]
struct Seen {
    data_generation: DataGeneration,
    first: BootInstant,
    last: BootInstant,
    /// When this client last saw the member in another data generation.
    other_until: Option<BootInstant>,
}

/// The latest time at which a member's data generation can have begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    /// In nanoseconds, as a [`BootInstant`] counts them.
    at: i128,
    /// It is the member's first data generation: an operator initialized the quorum, which declares that it held
    /// nothing before.
    has_no_past: bool,
}

/// Which members may have forgotten leases ("delayed restarts", done by the clients: Redis documentation,
/// "Distributed Locks with Redis", performance, crash recovery and fsync).
///
/// A member counts once it is known to have remembered everything for the longest TTL and a second. This
/// client's own clock shows that if the client saw the member for that long. Otherwise the member's clock
/// shows it, unless a peer or this client saw the data generation change later than that clock says.
#[derive(Debug)]
pub(crate) struct DataGenerations {
    wait: Duration,
    seen: PerMember<Option<Seen>>,
}

impl DataGenerations {
    pub(crate) fn new(members: usize, max_ttl: Duration) -> Self {
        Self {
            wait: wait_of(max_ttl),
            seen: ti_vec![None; members],
        }
    }

    pub(crate) fn set_max_ttl(&mut self, max_ttl: Duration) {
        self.wait = wait_of(max_ttl);
    }

    pub(crate) fn present(&mut self, member: MemberIndex, known: &Known) {
        let Some(data_generation) = known
            .status
            .member_record
            .as_ref()
            // Before, clients may count on an earlier server of its id.
            .filter(|member_record| member_record.is_formed())
            .map(|member_record| member_record.data_generation)
        else {
            return;
        };
        let now = known.received;
        let seen = &mut self.seen[member];
        match seen {
            Some(seen) if data_generation.continues(seen.data_generation) => {
                (seen.data_generation, seen.last) = (data_generation, now);
            }
            _ => {
                *seen = Some(Seen {
                    data_generation,
                    first: now,
                    last: now,
                    other_until: seen.map(|seen| seen.last),
                });
            }
        }
    }

    /// Returns the instant from which the answers of a member with this beginning count: answers to
    /// requests that were sent then or later.
    pub(crate) fn counts_from(&self, began: Beginning) -> BootInstant {
        instant(began.at + whole(self.wait))
    }

    /// Returns whether a member with this beginning still has, at `sent`, all that it had to keep for
    /// `retention`.
    pub(crate) fn remembers(
        &self,
        began: Beginning,
        sent: BootInstant,
        retention: Duration,
    ) -> Result<(), UntrustedReason> {
        let age = self.remembers_for(began, sent);
        let Some(left) = retention.checked_sub(age).filter(|left| !left.is_zero()) else {
            return Ok(());
        };
        Err(UntrustedReason::Young {
            age: age_of(began.at, sent),
            left,
            until: sent + left,
        })
    }

    /// Returns for how long a member with this beginning has lost nothing at `sent`.
    pub(crate) fn remembers_for(&self, began: Beginning, sent: BootInstant) -> Duration {
        if began.has_no_past {
            return Duration::MAX;
        }
        // A new member of a changed quorum got a data generation that is old enough for leases.
        age_of(began.at + whole(2 * self.wait), sent)
    }

    /// Returns the latest time at which the present data generation of `member` can have begun. `peers` are the
    /// other members whose clocks are believed.
    pub(crate) fn began<'a>(
        &self,
        member: MemberIndex,
        id: &MemberId,
        known: Option<&Known>,
        peers: impl Iterator<Item = &'a Known>,
    ) -> Result<Beginning, UntrustedReason> {
        let forgot = |what| Err(UntrustedReason::Forgot { what, until: None });
        let Some(known) = known else {
            return Err(UntrustedReason::Unknown);
        };
        let Some(member_record) = &known.status.member_record else {
            return forgot(Forgetting::LostRecord);
        };
        if !known.status.remembers() {
            return forgot(match known.status.was_replica {
                true => Forgetting::WasReplica,
                false => Forgetting::Restarted,
            });
        }
        let Some(seen) =
            self.seen[member].filter(|seen| seen.data_generation == member_record.data_generation)
        else {
            return Err(UntrustedReason::Unknown);
        };
        let reports = PeerReports::of(id, member_record.data_generation, peers);
        let mut began = reports.began(known, member_record, seen);
        let is_contradicted = seen.other_until.is_some_and(|other| began <= nanos(other));
        if is_contradicted {
            // This client saw the previous data generation after the present one is said to have begun.
            began = nanos(seen.first);
        }
        let is_first = !is_contradicted && !reports.change;
        Ok(Beginning {
            at: began.min(nanos(seen.first)),
            has_no_past: is_first && member_record.since.as_micros() == 0,
        })
    }
}

/// What the peers report about one data generation.
#[derive(Debug, Default)]
struct PeerReports {
    /// When the first peer heard of it.
    earliest: Option<i128>,
    /// Whether a peer knew an earlier data generation, or still does.
    change: bool,
}

impl PeerReports {
    fn of<'a>(
        id: &MemberId,
        data_generation: DataGeneration,
        peers: impl Iterator<Item = &'a Known>,
    ) -> Self {
        let mut reports = Self::default();
        for peer in peers {
            let status = &peer.status;
            let member_record = status.member_record.as_ref();
            let Some(observation) =
                member_record.and_then(|member_record| member_record.observations.get(id))
            else {
                continue;
            };
            let is_this_generation = data_generation.continues(observation.data_generation);
            reports.change |= observation.changed || !is_this_generation;
            // A time ahead of the peer's clock means that the clock was set back, so it proves nothing.
            if is_this_generation && observation.at <= status.clock {
                let at = ago(peer.received, status.clock, observation.at);
                reports.earliest = Some(reports.earliest.map_or(at, |earliest| earliest.min(at)));
            }
        }
        reports
    }

    /// Returns the latest time at which the data generation can have begun. The member's own clock decides, unless
    /// peers saw the data generation change. They may have heard of it late, so the earliest one is right.
    fn began(&self, known: &Known, member_record: &MemberRecord, seen: Seen) -> i128 {
        let clock = known.status.clock;
        let own =
            (member_record.since <= clock).then(|| ago(known.received, clock, member_record.since));
        let observed = self.earliest.unwrap_or_else(|| nanos(seen.first));
        match own {
            Some(own) if self.change => own.max(observed),
            Some(own) => own,
            None => observed,
        }
    }
}

/// Returns how long a member that may have forgotten leases has to wait.
pub(crate) fn wait_of(max_ttl: Duration) -> Duration {
    max_ttl + Duration::from_secs(1)
}

/// Returns an age at which a data generation needs no wait, including the time that an answer travels.
pub(crate) fn old_enough(max_ttl: Duration) -> Duration {
    2 * wait_of(max_ttl)
}

/// Converts a time of a member's clock, which showed `clock` at `received`, to an instant of this client.
/// The result is in nanoseconds, since it may lie before the boot of this machine.
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

/// Returns the time from `then` to `now`. A server may have been up for longer than this machine, so `then` may lie
/// before its boot.
fn age_of(then: i128, now: BootInstant) -> Duration {
    let nanos = u64::try_from((nanos(now) - then).max(0));
    nanos.map_or(Duration::MAX, Duration::from_nanos)
}

/// Returns the instant for `nanos`, or the nearest one that exists. Before the boot of this machine, this client
/// sent nothing.
fn instant(nanos: i128) -> BootInstant {
    BootInstant::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}
