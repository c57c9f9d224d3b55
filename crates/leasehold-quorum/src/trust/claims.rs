use crate::trust::Trust;
use crate::trust::distrust::Distrust;
use crate::trust::lives::Known;

impl Trust {
    /// Returns a distrust if the record of another member places this one in another quorum. Then one of
    /// the two came back from an old copy of its data or lost a configuration.
    pub(super) fn claimed(&self, member: usize, known: &Known) -> Option<Distrust> {
        let own = known.presence.card.as_ref();
        let generation = own.map_or(0, |card| card.generation);
        let mut others = self.known.iter().enumerate();
        others.find_map(|(other, known)| {
            let card = known.as_ref()?.presence.card.as_ref()?;
            let claims = other != member && card.claims(&self.ids[member], &self.set, generation);
            claims.then(|| Distrust::Claimed {
                by: self.ids[other].clone(),
                theirs: Box::new(card.set.clone()),
                generation: card.generation,
                ours: self.set.clone(),
            })
        })
    }
}
