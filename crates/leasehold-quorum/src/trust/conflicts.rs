use crate::member::index::MemberIndex;
use crate::trust::Trust;
use crate::trust::data_generations::Known;
use crate::trust::untrusted::UntrustedReason;
use leasehold_types::MemberRecord;

impl Trust {
    /// Returns a reason if the record of another member places this one in another quorum. Then one of
    /// the two came back from an old copy of its data or lost a configuration.
    pub(super) fn claimed(&self, member: MemberIndex, known: &Known) -> Option<UntrustedReason> {
        let own = known.status.member_record.as_ref();
        let configuration = own.map_or(0, MemberRecord::configuration);
        let mut others = self.known.iter_enumerated();
        others.find_map(|(other, known)| {
            let member_record = known.as_ref()?.status.member_record.as_ref()?;
            let claims = other != member
                && member_record.claims(&self.ids[member], &self.set, configuration);
            claims.then(|| UntrustedReason::Claimed {
                by: self.ids[other].clone(),
                theirs: Box::new(member_record.set.clone()),
                generation: member_record.configuration(),
                ours: self.set.clone(),
            })
        })
    }

    /// Returns a reason if another member knows a later server under this member's id. Each majority with
    /// this server contains a member that knows a server which has a vote instead.
    pub(super) fn replaced(&self, member: MemberIndex, known: &Known) -> Option<UntrustedReason> {
        let own = known.status.member_record.as_ref()?;
        let id = &self.ids[member];
        let mut others = self.known.iter_enumerated();
        others.find_map(|(other, known)| {
            let record = known.as_ref()?.status.member_record.as_ref()?;
            let knows = other != member
                && record.set == self.set
                && own.was_replaced_according_to(record, id);
            knows.then(|| UntrustedReason::Replaced {
                id: id.clone(),
                by: self.ids[other].clone(),
            })
        })
    }

    /// Returns whether at least `count` of the other members, with records of this quorum that need no update, know
    /// this data generation of the member.
    pub(super) fn is_known_to(
        &self,
        count: usize,
        member: MemberIndex,
        own: &MemberRecord,
    ) -> bool {
        let knows = |(other, record): &(MemberIndex, &MemberRecord)| {
            let seen = record.seen(&self.ids[member]);
            *other != member && seen.is_some_and(|seen| seen.continues(own.data_generation))
        };
        self.settled().filter(knows).count() >= count
    }
}
