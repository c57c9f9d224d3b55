//! Decides whose answers count, from what members reported about themselves alone.
//!
//! [`Trust`] does no I/O. It takes in what members reported, with the instants between which they did so.
//! It says whether an answer to a request sent at some instant counts. Callers ask at all four places that
//! count answers: grant, confirm, renewal and repair.

mod clocks;
mod conflicts;
mod data_generations;
mod limits;
mod member_records;
mod rules;
#[cfg(test)]
mod tests;
mod untrusted;

use std::time::Duration;

use leasehold_types::{
    BootInstant, Incarnation, MemberId, MemberRecord, MemberSet, MemberStatus, Sample, WallTime,
};
use typed_index_collections::ti_vec;

pub(crate) use clocks::Reading;
pub(crate) use data_generations::{old_enough, wait_of};
pub use limits::stated_set;
pub use member_records::RecordStep;
pub(crate) use member_records::admission;
pub use rules::TrustRules;
pub(crate) use untrusted::{UntrustedReason, difference};

use clocks::Clocks;
use data_generations::{Beginning, DataGenerations, Known};
use untrusted::Forgetting;

use crate::member::index::{MemberIndex, PerMember};

/// What one client knows about its members, and which of them it trusts.
#[derive(Debug)]
pub(crate) struct Trust {
    /// The quorum, with the limits that its members state. Until a member has, these are the limits of a quorum
    /// that this client initializes.
    set: MemberSet,
    /// Whether a majority states these limits.
    is_agreed: bool,
    /// The members as the client was given them. Other fields refer to them by their position here.
    ids: PerMember<MemberId>,
    /// Whether the trust rules apply. Otherwise the answers of all members count.
    enforced: bool,
    known: PerMember<Option<Known>>,
    /// The conclusion for each member, valid while all clocks are believed.
    members: PerMember<MemberTrust>,
    incarnations: PerMember<Option<Incarnation>>,
    /// The members whose record could not be read or written. Nothing is tried again before their next answer.
    missed: PerMember<bool>,
    data_generations: DataGenerations,
    clocks: Clocks,
}

/// What follows for one member from the reports of all members.
#[derive(Clone, Debug)]
struct MemberTrust {
    may_be_asked: Result<(), UntrustedReason>,
    counts_from: Result<BootInstant, UntrustedReason>,
}

/// Two instants of this client between which a member answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) sent: BootInstant,
    pub(crate) received: BootInstant,
}

/// What the caller has to do after it handed in a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Learned {
    /// The member must be asked again. The answer came from other data than the member reported, the report
    /// is old ([`LOOK_AGAIN`]), or the record could not be read or written before.
    pub(crate) must_look: bool,
    /// This client was stopped for this span.
    pub(crate) paused: Option<Duration>,
}

/// For how long a client relies on a member's report about itself. No other answer shows a change of the
/// member's settings.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

impl Trust {
    pub(crate) fn new(ids: Vec<MemberId>, set: MemberSet, enforced: bool) -> Self {
        let count = ids.len();
        let mut trust = Self {
            known: ti_vec![None; count],
            members: PerMember::new(),
            incarnations: ti_vec![None; count],
            missed: ti_vec![false; count],
            is_agreed: false,
            data_generations: DataGenerations::new(count, set.max_ttl),
            clocks: Clocks::new(count, set.clock_tolerance, set.max_ttl),
            set,
            ids: ids.into(),
            enforced,
        };
        trust.judge();
        trust
    }

    pub(crate) fn is_enforced(&self) -> bool {
        self.enforced
    }

    /// Returns the last report of the member about itself.
    pub(crate) fn status(&self, member: MemberIndex) -> Option<&MemberStatus> {
        Some(&self.known[member].as_ref()?.status)
    }

    /// Whether the member keeps what it acknowledges across its next restart.
    pub(crate) fn is_durable(&self, member: MemberIndex) -> bool {
        let known = self.known[member].as_ref();
        known.is_some_and(|known| known.status.will_remember())
    }

    /// Whether the record of another member shows that this one came back with older data.
    fn is_rolled_back(&self, member: MemberIndex, member_record: &MemberRecord) -> bool {
        let mut peers = self.known.iter().flatten();
        peers.any(|known| {
            let peer = known.status.member_record.as_ref();
            peer.is_some_and(|peer| member_record.is_older_than_known_to(peer, &self.ids[member]))
        })
    }

    /// Whether the member has reported anything about itself since `instant`.
    pub(crate) fn heard_since(&self, member: MemberIndex, instant: BootInstant) -> bool {
        let known = self.known[member].as_ref();
        known.is_some_and(|known| known.received >= instant)
    }

    /// Takes in a member's report about itself.
    pub(crate) fn present(
        &mut self,
        member: MemberIndex,
        status: MemberStatus,
        at: Interval,
    ) -> Learned {
        let received = at.received;
        // A newer answer overtook this one.
        if self.known[member]
            .as_ref()
            .is_some_and(|known| known.received > received)
        {
            return Learned::default();
        }
        let learned = Learned {
            must_look: false,
            paused: self.read_clock(member, status.clock, at),
        };
        self.incarnations[member] = Some(status.incarnation());
        self.missed[member] = false;
        let known = Known { status, received };
        self.data_generations.present(member, &known);
        self.known[member] = Some(known);
        self.adopt_limits(received);
        self.judge();
        learned
    }

    /// Notes that the member's record could not be read or written.
    pub(crate) fn missed(&mut self, member: MemberIndex) {
        self.missed[member] = self.enforced;
        self.judge();
    }

    /// Draws the conclusions for each member. They are needed far more often than new reports arrive.
    fn judge(&mut self) {
        let standing = |member| MemberTrust {
            may_be_asked: self.admit(member),
            counts_from: self.counts_from(member, |_| true),
        };
        self.members = self.ids.keys().map(standing).collect();
    }

    /// Takes in the sample that came with an answer.
    pub(crate) fn sample(&mut self, member: MemberIndex, sample: &Sample, at: Interval) -> Learned {
        let is_other_data = self.incarnations[member].as_ref() != Some(&sample.incarnation);
        let is_due = self.enforced && !self.heard_since(member, at.received - LOOK_AGAIN);
        let must_look = is_other_data || is_due || self.missed[member];
        if !self.enforced || !is_other_data {
            // Equal incarnations are compared faster if they are one text.
            self.incarnations[member] = Some(sample.incarnation.clone());
        }
        Learned {
            must_look,
            paused: self.read_clock(member, sample.clock, at),
        }
    }

    /// Without enforced rules, a single wrong server could make this client believe that it was stopped.
    fn read_clock(
        &mut self,
        member: MemberIndex,
        clock: WallTime,
        at: Interval,
    ) -> Option<Duration> {
        let Interval { sent, received } = at;
        let reading = Reading {
            clock,
            sent,
            received,
        };
        self.enforced
            .then(|| self.clocks.read(member, reading))
            .flatten()
    }

    /// Whether the member may be asked for anything at all.
    #[inline]
    pub(crate) fn may_ask(&self, member: MemberIndex) -> Result<(), &UntrustedReason> {
        self.members[member].may_be_asked.as_ref().copied()
    }

    fn admit(&self, member: MemberIndex) -> Result<(), UntrustedReason> {
        let Some(known) = &self.known[member] else {
            return Ok(());
        };
        if !self.enforced {
            // A server that is used alone may be a member of a quorum, and this client does not see the
            // quorum's locks.
            return self.other_set(known).map_or(Ok(()), Err);
        }
        if let Some(misfit) = self.misfit(member, known) {
            return Err(misfit);
        }
        if self.is_unformed() {
            let silent = |(member, known): (MemberIndex, &Option<Known>)| {
                known.is_none().then(|| self.ids[member].clone())
            };
            let missing = self.known.iter_enumerated().filter_map(silent).collect();
            return Err(UntrustedReason::NotFormed { missing });
        }
        Ok(())
    }

    /// Returns whether the member's answer counts, if it came from this incarnation to a request sent at
    /// `sent`.
    #[inline]
    pub(crate) fn counts(
        &self,
        member: MemberIndex,
        sent: BootInstant,
        incarnation: Option<&Incarnation>,
    ) -> Result<(), UntrustedReason> {
        self.may_ask(member).map_err(Clone::clone)?;
        if !self.enforced {
            return Ok(());
        }
        let are_all_believed = self.clocks.all_believed(sent);
        let from = if are_all_believed {
            let known = self.members[member].counts_from.as_ref();
            *known.map_err(Clone::clone)?
        } else {
            let believed = |other| self.clocks.verdict(other, sent).is_ok();
            self.counts_from(member, believed)?
        };
        if sent < from {
            return Err(UntrustedReason::Forgot {
                what: Forgetting::NewLife,
                until: Some(from),
            });
        }
        if !are_all_believed {
            self.clocks.verdict(member, sent)?;
        }
        if incarnation.is_some() && incarnation != self.incarnations[member].as_ref() {
            return Err(UntrustedReason::Changed);
        }
        Ok(())
    }

    /// Returns whether a member that counts has lost nothing that it had to keep for `retention`, by an
    /// answer to a request sent at `sent`.
    pub(crate) fn remembers(
        &self,
        member: MemberIndex,
        sent: BootInstant,
        retention: Duration,
    ) -> Result<(), UntrustedReason> {
        if !self.enforced {
            return Ok(());
        }
        let believed = |other| self.clocks.verdict(other, sent).is_ok();
        let began = self.began(member, believed)?;
        self.data_generations.remembers(began, sent, retention)
    }

    /// Returns for how long a member has lost nothing at `sent`, if that is known. [`remembers`](Self::remembers)
    /// compares it with a retention.
    pub(crate) fn remembers_for(&self, member: MemberIndex, sent: BootInstant) -> Option<Duration> {
        if !self.enforced {
            return Some(Duration::MAX);
        }
        let believed = |other| self.clocks.verdict(other, sent).is_ok();
        let began = self.began(member, believed).ok()?;
        Some(self.data_generations.remembers_for(began, sent))
    }

    /// Returns the instant from which the member's answers count, with the peers whose clocks are believed.
    fn counts_from(
        &self,
        member: MemberIndex,
        believed: impl Fn(MemberIndex) -> bool,
    ) -> Result<BootInstant, UntrustedReason> {
        let began = self.began(member, believed)?;
        Ok(self.data_generations.counts_from(began))
    }

    fn began(
        &self,
        member: MemberIndex,
        believed: impl Fn(MemberIndex) -> bool,
    ) -> Result<Beginning, UntrustedReason> {
        let others = self.known.iter_enumerated();
        let peers = others.filter_map(|(other, known)| {
            known
                .as_ref()
                .filter(|_| other != member && believed(other))
        });
        let (id, known) = (&self.ids[member], self.known[member].as_ref());
        if known.is_some_and(|known| !is_admitted(known)) {
            let id = id.clone();
            let what = Forgetting::LostRecord;
            return Err(match self.missing_evidence() {
                Some(missing) => UntrustedReason::LostRecord { id, missing },
                None => UntrustedReason::Forgot { what, until: None },
            });
        }
        let member_record = known.and_then(|known| known.status.member_record.as_ref());
        if member_record.is_some_and(|member_record| self.is_rolled_back(member, member_record)) {
            let what = Forgetting::Restarted;
            return Err(UntrustedReason::Forgot { what, until: None });
        }
        self.data_generations.began(member, id, known, peers)
    }

    /// Returns why the member cannot belong to this quorum, if so.
    fn misfit(&self, member: MemberIndex, known: &Known) -> Option<UntrustedReason> {
        let status = &known.status;
        if let Some(why) = &status.unfit {
            return Some(UntrustedReason::Unfit(why.clone()));
        }
        let same_server = self.known.iter_enumerated().find(|(other, theirs)| {
            let same = |theirs: &Known| theirs.status.run == status.run;
            *other != member && theirs.as_ref().is_some_and(same)
        });
        if let Some((other, _)) = same_server {
            return Some(UntrustedReason::SameServer(self.ids[other].clone()));
        }
        self.other_set(known)
            .or_else(|| self.claimed(member, known))
            .or_else(|| self.replaced(member, known).filter(|_| is_admitted(known)))
    }

    fn other_set(&self, known: &Known) -> Option<UntrustedReason> {
        let member_record = known.status.member_record.as_ref()?;
        (member_record.set != self.set).then(|| UntrustedReason::OtherSet {
            theirs: member_record.set.clone(),
            generation: member_record.configuration(),
            ours: self.set.clone(),
        })
    }
}

/// Whether the member has the confirmed record of a quorum.
fn is_admitted(known: &Known) -> bool {
    let record = known.status.member_record.as_ref();
    record.is_some_and(MemberRecord::is_formed)
}
