use std::time::Duration;

use crate::ballot::majority;
use crate::member::index::{MemberIndex, PerMember};
use crate::trust::Trust;
use crate::trust::data_generations::Known;
use crate::trust::untrusted::UntrustedReason;
use leasehold_types::{DataGeneration, Entropy, MemberId, MemberRecord, MemberRecordEdit};

/// What a client has to do about the members' records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordStep {
    /// Write this to the member's record, then ask the member again.
    Write(MemberIndex, MemberRecordEdit),
    /// Report these data generations of other members to the member, then ask it again.
    Observe(MemberIndex, Vec<(MemberId, DataGeneration)>),
    /// Ask the member again: the client's knowledge of it is older than that of a peer.
    Refresh(MemberIndex),
}

impl RecordStep {
    pub(crate) fn member(&self) -> MemberIndex {
        match self {
            Self::Write(member, _) | Self::Observe(member, _) | Self::Refresh(member) => *member,
        }
    }
}

impl Trust {
    /// Returns the steps that the known records still need.
    pub(crate) fn member_record_steps(&self, entropy: &dyn Entropy) -> Vec<RecordStep> {
        if !self.enforced {
            return Vec::new();
        }
        if self
            .known
            .iter()
            .flatten()
            .all(|known| known.status.member_record.is_none())
        {
            // The quorum may have been initialized before: servers that were all flushed look the same.
            let mut steps = self.form(entropy, |known| Some(remembered(known)));
            steps.retain(|step| !self.missed[step.member()]);
            return steps;
        }
        let steps = self.ids.keys().filter_map(|member| {
            let known = self.known[member].as_ref()?;
            let misfit = self.misfit(member, known);
            match &known.status.member_record {
                _ if misfit.is_some_and(|it| !matches!(it, UntrustedReason::Replaced { .. })) => {
                    None
                }
                None => self.restore(member, known, entropy),
                Some(member_record) if self.replaced(member, known).is_some() => {
                    self.admit_again(member, known, member_record, entropy)
                }
                Some(member_record) => self
                    .confirm(member, known, member_record, entropy)
                    .or_else(|| self.complete(member, known, member_record))
                    .or_else(|| self.tell(member, member_record)),
            }
        });
        let steps = steps.filter(|step| !self.missed[step.member()]);
        let (refreshes, mut steps): (Vec<_>, Vec<_>) =
            steps.partition(|step| matches!(step, RecordStep::Refresh(_)));
        // One refresh at a time, and only if nothing is known for certain. Each refresh makes the member's own
        // answer the newest one. Two refreshes that take turns would make every other answer doubtful again,
        // without end.
        if steps.is_empty() {
            steps.extend(refreshes.into_iter().next());
        }
        steps
    }

    /// Whether no known member has the record of an initialized quorum.
    pub(crate) fn is_unformed(&self) -> bool {
        let mut known = self.known.iter().flatten();
        known.all(|known| {
            !known
                .status
                .member_record
                .as_ref()
                .is_some_and(MemberRecord::is_formed)
        })
    }

    /// Returns the first records, once all members have answered. The records say that the quorum is still
    /// being formed. `age` returns for how long a member has remembered everything.
    pub(crate) fn form(
        &self,
        entropy: &dyn Entropy,
        age: impl Fn(&Known) -> Option<Duration>,
    ) -> Vec<RecordStep> {
        let known: PerMember<&Known> = self.known.iter().flatten().collect();
        let misfit = |(member, known): (MemberIndex, &&Known)| self.misfit(member, known).is_some();
        if known.len() < self.ids.len() || known.iter_enumerated().any(misfit) {
            return Vec::new();
        }
        let draw = |id: &MemberId| (id.clone(), DataGeneration::random(entropy));
        let data_generations: PerMember<(MemberId, DataGeneration)> =
            self.ids.iter().map(draw).collect();
        let first = |(member, known): (MemberIndex, &&Known)| {
            let (_, data_generation) = data_generations[member];
            let edit = MemberRecordEdit {
                expected: None,
                set: self.set.clone(),
                generation: 0,
                run: known.status.run.clone(),
                durable: known.status.durable,
                data_generation,
                age: age(known),
                seen: others(&data_generations, &self.ids[member]),
            };
            RecordStep::Write(member, edit)
        };
        known.iter_enumerated().map(first).collect()
    }

    /// Brings a record up to date with its member. The record gets the member's new run, with a new data generation
    /// unless the member remembers everything. It also notes that the member is no longer durable. The data generation
    /// then gets its next name, so that the other members notice a return to older data.
    fn confirm(
        &self,
        member: MemberIndex,
        known: &Known,
        member_record: &MemberRecord,
        entropy: &dyn Entropy,
    ) -> Option<RecordStep> {
        let status = &known.status;
        let remembers = status.remembers() && !self.is_rolled_back(member, member_record);
        let kept = match remembers {
            false => None,
            // After the last name the others could not notice a return, so the member gets a new data generation.
            true if member_record.durable && !status.durable => {
                member_record.data_generation.renamed()
            }
            true if member_record.run == status.run => return None,
            true => Some(member_record.data_generation),
        };
        let own = member_record.data_generation;
        let data_generation = kept.unwrap_or_else(|| own.restarted(self.names_of(member), entropy));
        let edit = MemberRecordEdit {
            expected: Some(member_record.epoch()),
            set: member_record.set.clone(),
            generation: match data_generation.was_admitted_after(own) {
                true => 0,
                false => member_record.generation,
            },
            run: status.run.clone(),
            durable: status.durable,
            data_generation,
            age: kept.is_none().then_some(Duration::ZERO),
            seen: Vec::new(),
        };
        Some(RecordStep::Write(member, edit))
    }

    /// Draws a new data generation for a server whose id had a later server, if the later one has no vote: if a majority of the
    /// others knows this one, or if neither has been admitted. Its client may have stopped halfway. Otherwise only
    /// an operator decides between two servers.
    fn admit_again(
        &self,
        member: MemberIndex,
        known: &Known,
        member_record: &MemberRecord,
        entropy: &dyn Entropy,
    ) -> Option<RecordStep> {
        let needed = majority(self.ids.len());
        if member_record.is_formed() && !self.is_known_to(needed, member, member_record) {
            return None;
        }
        let edit = MemberRecordEdit {
            expected: Some(member_record.epoch()),
            set: member_record.set.clone(),
            generation: 0,
            run: known.status.run.clone(),
            durable: known.status.durable && member_record.durable,
            data_generation: self.admission(member, entropy),
            age: Some(Duration::ZERO),
            seen: Vec::new(),
        };
        Some(RecordStep::Write(member, edit))
    }

    /// Returns a data generation for a server that is admitted as this member.
    fn admission(&self, member: MemberIndex, entropy: &dyn Entropy) -> DataGeneration {
        let records = self.answered().filter_map(|(of, known)| {
            let record = known.status.member_record.as_ref()?;
            Some((&self.ids[of], record))
        });
        admission(&self.ids[member], records, entropy)
    }

    /// The data generations of the member that the others know.
    fn names_of(&self, member: MemberIndex) -> impl Iterator<Item = DataGeneration> {
        let known = self.known.iter().flatten();
        known.filter_map(move |known| known.status.member_record.as_ref()?.seen(&self.ids[member]))
    }

    /// Confirms a record that says the quorum is still being formed, or the server still being admitted. The others must
    /// know its data generation: all members, or a majority whose records are confirmed. Otherwise two clients with
    /// different lists that write records at the same time could each win a majority of its own: with different members,
    /// or with two servers under one id.
    ///
    /// From then on the server waits until the leases end that clients took with an earlier server of its id.
    fn complete(
        &self,
        member: MemberIndex,
        known: &Known,
        member_record: &MemberRecord,
    ) -> Option<RecordStep> {
        if member_record.is_formed() {
            return None;
        }
        let latest = self.latest()?;
        let (total, needed) = (self.ids.len(), majority(self.ids.len()));
        let all = self.settled().count() == total;
        if !all && !self.is_vouched_for(latest.max(1)) {
            return self.refresh();
        }
        let is_known = self.is_known_to(total - 1, member, member_record)
            || self.is_vouched_for(latest.max(1))
                && self.is_known_to(needed, member, member_record);
        if !is_known {
            return None;
        }
        let generations = self.settled().map(|(_, record)| record.generation);
        let edit = MemberRecordEdit {
            expected: Some(member_record.epoch()),
            set: member_record.set.clone(),
            generation: MemberRecord::latest(generations).unwrap_or(0).max(1),
            run: known.status.run.clone(),
            durable: member_record.durable,
            data_generation: member_record.data_generation,
            // An operator stated that the members of a new quorum never held anything.
            age: (member_record.since.as_micros() > 0).then_some(Duration::ZERO),
            seen: Vec::new(),
        };
        Some(RecordStep::Write(member, edit))
    }

    /// Returns a record for a member that lost its own. This needs a majority of the members with the
    /// record of the latest generation, or answers of all members without a contradiction.
    /// [`complete`](Self::complete) confirms the record later. One old record is thus never enough: it
    /// may have come back from a copy, while the other members lost everything and belong to another
    /// quorum.
    ///
    /// Only answers of the last seconds are evidence. What the client remembers from before is not.
    fn restore(
        &self,
        member: MemberIndex,
        known: &Known,
        entropy: &dyn Entropy,
    ) -> Option<RecordStep> {
        let mut answered = self.answered();
        if answered.any(|(other, known)| self.misfit(other, known).is_some()) {
            return None;
        }
        let latest = self.latest()?;
        if !self.is_vouched_for(latest) && !self.ids.keys().all(|it| self.is_recent(it)) {
            return self.refresh();
        }
        let edit = MemberRecordEdit {
            expected: None,
            set: self.set.clone(),
            generation: 0,
            run: known.status.run.clone(),
            durable: known.status.durable,
            data_generation: self.admission(member, entropy),
            age: Some(match latest {
                0 => remembered(known),
                _ => Duration::ZERO,
            }),
            seen: self.data_generations(),
        };
        Some(RecordStep::Write(member, edit))
    }

    fn answered(&self) -> impl Iterator<Item = (MemberIndex, &Known)> {
        let known = self.known.iter_enumerated();
        known.filter_map(|(member, known)| Some((member, known.as_ref()?)))
    }

    /// Whether the member answered within [`RECENT`] of the latest answer of any member.
    fn is_recent(&self, member: MemberIndex) -> bool {
        let latest = self.answered().map(|(_, known)| known.received).max();
        let received = self.known[member].as_ref().map(|known| known.received);
        received.is_some_and(|received| latest.is_some_and(|it| it.since(received) <= RECENT))
    }

    /// Asks a member again if its answer is too old to be evidence.
    fn refresh(&self) -> Option<RecordStep> {
        let stale = |(it, _): &(MemberIndex, _)| !self.is_recent(*it) && !self.missed[*it];
        self.answered()
            .find(stale)
            .map(|(it, _)| RecordStep::Refresh(it))
    }

    /// The number of the latest configuration.
    fn latest(&self) -> Option<u64> {
        self.settled()
            .map(|(_, member_record)| member_record.configuration())
            .max()
    }

    /// Whether a majority recently reported that it has the record of this generation.
    fn is_vouched_for(&self, generation: u64) -> bool {
        let vouches = |(member, member_record): &(MemberIndex, &MemberRecord)| {
            member_record.configuration() == generation && self.is_recent(*member)
        };
        self.settled().filter(vouches).count() >= majority(self.ids.len())
    }

    /// Returns the members that do not answer although a member without a record needs their evidence, if any.
    pub(super) fn missing_evidence(&self) -> Option<Vec<MemberId>> {
        if self.is_unformed() || self.latest().is_some_and(|it| self.is_vouched_for(it)) {
            return None;
        }
        let silent = |member: &MemberIndex| self.known[*member].is_none() || self.missed[*member];
        let silent = self.ids.keys().filter(silent);
        let missing: Vec<_> = silent.map(|member| self.ids[member].clone()).collect();
        (!missing.is_empty()).then_some(missing)
    }

    /// Reports to this member the data generations of others that it does not know yet.
    fn tell(&self, member: MemberIndex, member_record: &MemberRecord) -> Option<RecordStep> {
        let (mut news, mut doubtful) = (Vec::new(), None);
        for (other, theirs) in self.settled().filter(|(other, _)| *other != member) {
            let id = &self.ids[other];
            match member_record.seen(id) {
                Some(seen) if seen.continues(theirs.data_generation) => {}
                // The client's knowledge of the other is older.
                Some(seen) if seen > theirs.data_generation => {
                    doubtful = doubtful.or(Some(other));
                }
                _ => news.push((id.clone(), theirs.data_generation)),
            }
        }
        match news.is_empty() {
            true => doubtful.map(RecordStep::Refresh),
            false => Some(RecordStep::Observe(member, news)),
        }
    }

    /// Returns the members with records of this quorum that need no update.
    pub(super) fn settled(&self) -> impl Iterator<Item = (MemberIndex, &MemberRecord)> {
        self.known.iter_enumerated().filter_map(|(member, known)| {
            let known = known.as_ref()?;
            let member_record = known.status.member_record.as_ref()?;
            let settled = member_record.set == self.set
                && member_record.run == known.status.run
                && self.replaced(member, known).is_none();
            settled.then_some((member, member_record))
        })
    }

    fn data_generations(&self) -> Vec<(MemberId, DataGeneration)> {
        self.settled()
            .map(|(member, member_record)| {
                (self.ids[member].clone(), member_record.data_generation)
            })
            .collect()
    }
}

/// Draws a data generation for a server that is admitted as the member `id`. `records` are all records that are known.
pub(crate) fn admission<'a>(
    id: &MemberId,
    records: impl Iterator<Item = (&'a MemberId, &'a MemberRecord)>,
    entropy: &dyn Entropy,
) -> DataGeneration {
    let known = records.filter_map(|(of, record)| match of == id {
        true => Some(record.data_generation),
        false => record.seen(id),
    });
    DataGeneration::admitted(known, entropy)
}

/// How old an answer may be as evidence for a record: long enough to ask all members once more.
const RECENT: Duration = Duration::from_secs(10);

/// Returns for how long a member without a record has certainly remembered everything.
fn remembered(known: &Known) -> Duration {
    match known.status.uptime {
        Duration::MAX => Duration::MAX,
        _ => Duration::ZERO,
    }
}

fn others(
    data_generations: &PerMember<(MemberId, DataGeneration)>,
    id: &MemberId,
) -> Vec<(MemberId, DataGeneration)> {
    data_generations
        .iter()
        .filter(|(other, _)| other != id)
        .cloned()
        .collect()
}
