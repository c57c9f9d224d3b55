use crate::member::index::MemberIndex;
use crate::trust::Trust;
use crate::trust::data_generations::Known;
use crate::trust::untrusted::UntrustedReason;

impl Trust {
    /// Returns a reason if the record of another member places this one in another quorum. Then one of
    /// the two came back from an old copy of its data or lost a configuration.
    pub(super) fn claimed(&self, member: MemberIndex, known: &Known) -> Option<UntrustedReason> {
        let own = known.status.member_record.as_ref();
        let generation = own.map_or(0, |member_record| member_record.generation);
        let mut others = self.known.iter_enumerated();
        others.find_map(|(other, known)| {
            let member_record = known.as_ref()?.status.member_record.as_ref()?;
            let claims =
                other != member && member_record.claims(&self.ids[member], &self.set, generation);
            claims.then(|| UntrustedReason::Claimed {
                by: self.ids[other].clone(),
                theirs: Box::new(member_record.set.clone()),
                generation: member_record.generation,
                ours: self.set.clone(),
            })
        })
    }
}
