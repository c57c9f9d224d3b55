use std::time::Duration;

use crate::ballot::majority;
use crate::member::index::{MemberIndex, PerMember};
use crate::trust::Trust;
use crate::trust::data_generations::Known;
use leasehold_types::{DataGeneration, MemberId, MemberRecord, MemberRecordEdit};

/// What a client has to do about the members' records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordStep {
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
    /// Returns the steps that the known records still need. `draw` names new data generations.
    pub(crate) fn member_record_steps(
        &self,
        draw: &mut dyn FnMut() -> DataGeneration,
    ) -> Vec<RecordStep> {
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
            let mut steps = self.form(draw, |known| Some(remembered(known)));
            steps.retain(|step| !self.missed[step.member()]);
            return steps;
        }
        let steps = self.ids.keys().filter_map(|member| {
            let known = self.known[member].as_ref()?;
            if self.misfit(member, known).is_some() {
                return None;
            }
            match &known.status.member_record {
                None => self.restore(member, known, draw()),
                Some(member_record) => self
                    .confirm(member, known, member_record, draw)
                    .or_else(|| self.complete(member, known, member_record))
                    .or_else(|| self.tell(member, known, member_record)),
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
        draw: &mut dyn FnMut() -> DataGeneration,
        age: impl Fn(&Known) -> Option<Duration>,
    ) -> Vec<RecordStep> {
        let known: PerMember<&Known> = self.known.iter().flatten().collect();
        let misfit = |(member, known): (MemberIndex, &&Known)| self.misfit(member, known).is_some();
        if known.len() < self.ids.len() || known.iter_enumerated().any(misfit) {
            return Vec::new();
        }
        let data_generations: PerMember<(MemberId, DataGeneration)> =
            self.ids.iter().map(|id| (id.clone(), draw())).collect();
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
        draw: &mut dyn FnMut() -> DataGeneration,
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
        let edit = MemberRecordEdit {
            expected: Some(member_record.epoch()),
            set: member_record.set.clone(),
            generation: member_record.generation,
            run: status.run.clone(),
            durable: status.durable,
            data_generation: kept.unwrap_or_else(draw),
            age: kept.is_none().then_some(Duration::ZERO),
            seen: Vec::new(),
        };
        Some(RecordStep::Write(member, edit))
    }

    /// Confirms a record that says the quorum is still being formed. This needs the record on all members,
    /// or a confirmed record on a majority. Otherwise two clients with different lists that write records
    /// at the same time could each win a majority of its own.
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
        let all = self.settled().count() == self.ids.len();
        if !all && !self.is_vouched_for(latest.max(1)) {
            return self.refresh();
        }
        let edit = MemberRecordEdit {
            expected: Some(member_record.epoch()),
            set: member_record.set.clone(),
            generation: latest.max(1),
            run: known.status.run.clone(),
            durable: member_record.durable,
            data_generation: member_record.data_generation,
            age: None,
            seen: Vec::new(),
        };
        Some(RecordStep::Write(member, edit))
    }

    /// Returns a record for a member that lost its own. This needs a majority of the members with the
    /// record of the latest generation, or answers of all members without a contradiction. In the second
    /// case [`complete`](Self::complete) confirms the record later. One old record is thus never enough: it
    /// may have come back from a copy, while the other members lost everything and belong to another
    /// quorum.
    ///
    /// Only answers of the last seconds are evidence. What the client remembers from before is not.
    fn restore(
        &self,
        member: MemberIndex,
        known: &Known,
        data_generation: DataGeneration,
    ) -> Option<RecordStep> {
        let mut answered = self.answered();
        if answered.any(|(other, known)| self.misfit(other, known).is_some()) {
            return None;
        }
        let latest = self.latest()?;
        let generation = if self.is_vouched_for(latest) {
            latest
        } else if self.ids.keys().all(|it| self.is_recent(it)) {
            0
        } else {
            return self.refresh();
        };
        let edit = MemberRecordEdit {
            expected: None,
            set: self.set.clone(),
            generation,
            run: known.status.run.clone(),
            durable: known.status.durable,
            data_generation,
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

    fn latest(&self) -> Option<u64> {
        self.settled()
            .map(|(_, member_record)| member_record.generation)
            .max()
    }

    /// Whether a majority recently reported that it has the record of this generation.
    fn is_vouched_for(&self, generation: u64) -> bool {
        let vouches = |(member, member_record): &(MemberIndex, &MemberRecord)| {
            member_record.generation == generation && self.is_recent(*member)
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
    fn tell(
        &self,
        member: MemberIndex,
        known: &Known,
        member_record: &MemberRecord,
    ) -> Option<RecordStep> {
        let (mut news, mut doubtful) = (Vec::new(), None);
        for (other, theirs) in self.settled().filter(|(other, _)| *other != member) {
            let id = &self.ids[other];
            match member_record.observations.get(id) {
                Some(observation)
                    if observation
                        .data_generation
                        .continues(theirs.data_generation) => {}
                Some(_) if !self.is_younger(other, known) => doubtful = doubtful.or(Some(other)),
                _ => news.push((id.clone(), theirs.data_generation)),
            }
        }
        match news.is_empty() {
            true => doubtful.map(RecordStep::Refresh),
            false => Some(RecordStep::Observe(member, news)),
        }
    }

    fn is_younger(&self, member: MemberIndex, than: &Known) -> bool {
        let known = self.known[member].as_ref();
        known.is_some_and(|known| known.order > than.order)
    }

    /// Returns the members with records of this quorum that need no update.
    fn settled(&self) -> impl Iterator<Item = (MemberIndex, &MemberRecord)> {
        self.known.iter_enumerated().filter_map(|(member, known)| {
            let known = known.as_ref()?;
            let member_record = known.status.member_record.as_ref()?;
            let settled = member_record.set == self.set && member_record.run == known.status.run;
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
