use crate::card::{Card, MemberSet};
use crate::quorum::ballot::majority;
use crate::quorum::trust::Trust;
use crate::quorum::trust::distrust::Distrust;
use crate::quorum::trust::lives::Known;

impl Trust {
    /// Two sets whose majorities need not meet must not both have this member: it came back from an
    /// old copy of its data, or forgot one of them. Not where the other card is the older one: who
    /// has it may have missed that the set was changed.
    pub(super) fn claimed(&self, member: usize, known: &Known) -> Option<Distrust> {
        let own = known.presence.card.as_ref();
        let generation = own.map_or(0, |card| card.generation);
        let id = &self.ids[member];
        let claims = |card: &Card| {
            card.is_formed()
                && card.generation >= generation
                && card.set.ids.contains(id)
                && !always_meet(&card.set, &self.set)
        };
        let mut others = self.known.iter().enumerate();
        others.find_map(|(other, known)| {
            let card = known.as_ref()?.presence.card.as_ref()?;
            (other != member && claims(card)).then(|| Distrust::Claimed {
                by: self.ids[other].clone(),
                theirs: Box::new(card.set.clone()),
                generation: card.generation,
                ours: self.set.clone(),
            })
        })
    }
}

/// Whether each majority of one has a member in common with each majority of the other.
pub(super) fn always_meet(one: &MemberSet, other: &MemberSet) -> bool {
    let joining = other.ids.iter().filter(|id| !one.ids.contains(id));
    let all = one.ids.len() + joining.count();
    majority(one.ids.len()) + majority(other.ids.len()) > all
}
