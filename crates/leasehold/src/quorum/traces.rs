use std::collections::{HashMap, VecDeque};

use tokio_util::sync::CancellationToken;

use crate::claim::{Claim, Mode};
use crate::owner::Owner;

/// What attempts may have left at one member, so that each is freed rightly: after its own answer,
/// once, and not at all where nothing was sent. Bounded, however long a member stays silent.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    attempts: HashMap<Owner, Trace>,
    /// Leases that are being renewed, and may be put back where they were forgotten: not in another
    /// mode than that of the last renewal.
    renewing: HashMap<Owner, Mode>,
    /// The latest attempts of which nothing was sent; of earlier ones a release is sent in vain.
    not_asked: VecDeque<Owner>,
}

#[derive(Clone, Debug)]
enum Trace {
    /// Asked, not answered yet; the token is cancelled with the answer.
    Asking(CancellationToken),
    /// No answer came: the request may take effect at any time until its TTL.
    Doubtful,
    /// Being freed.
    Freeing,
}

/// What is to be done to free an attempt.
#[derive(Debug)]
pub(crate) enum Freeing {
    /// Wait until the token is cancelled, then ask again.
    AfterAnswer(CancellationToken),
    /// Nothing was sent, or it is being freed already.
    NotNeeded,
    AlreadyBegun,
    /// Free it now; again later, if it is doubtful whether it has taken effect yet.
    Begin {
        doubtful: bool,
    },
}

impl Traces {
    pub(crate) fn asking(&mut self, owner: Owner, answered: CancellationToken) {
        self.attempts.insert(owner, Trace::Asking(answered));
    }

    /// Cancelled once the attempt that is under way is answered.
    pub(crate) fn being_asked(&self, owner: Owner) -> Option<CancellationToken> {
        match self.attempts.get(&owner) {
            Some(Trace::Asking(answered)) => Some(answered.clone()),
            _ => None,
        }
    }

    pub(crate) fn not_asked(&mut self, owner: Owner) {
        if self.not_asked.len() == NOT_ASKED_MAX {
            self.not_asked.pop_front();
        }
        self.not_asked.push_back(owner);
    }

    pub(crate) fn answered(&mut self, owner: Owner, doubtful: bool) {
        if doubtful {
            self.attempts.insert(owner, Trace::Doubtful);
        } else {
            self.attempts.remove(&owner);
        }
    }

    pub(crate) fn renewing(&mut self, claim: &Claim) {
        if !matches!(self.attempts.get(&claim.owner), Some(Trace::Freeing)) {
            self.renewing.insert(claim.owner, claim.mode);
        }
    }

    pub(crate) fn is_renewing(&self, claim: &Claim) -> bool {
        self.renewing.get(&claim.owner) == Some(&claim.mode)
    }

    pub(crate) fn renewed(&mut self, owner: Owner) {
        self.renewing.remove(&owner);
    }

    pub(crate) fn begin_freeing(&mut self, owner: Owner) -> Freeing {
        self.renewing.remove(&owner);
        let doubtful = match self.attempts.get(&owner) {
            Some(Trace::Asking(answered)) => return Freeing::AfterAnswer(answered.clone()),
            Some(Trace::Freeing) => return Freeing::AlreadyBegun,
            Some(Trace::Doubtful) => true,
            None if self.not_asked.contains(&owner) => return Freeing::NotNeeded,
            None => false,
        };
        self.attempts.insert(owner, Trace::Freeing);
        Freeing::Begin { doubtful }
    }

    pub(crate) fn freed(&mut self, owner: Owner) {
        self.attempts.remove(&owner);
    }

    /// Whether there is room to follow up one more attempt; beyond, its TTL frees it.
    pub(crate) fn may_follow_up(&self) -> bool {
        self.attempts.len() <= FOLLOW_UP_MAX
    }
}

const NOT_ASKED_MAX: usize = 1024;
/// So many attempts are followed up at one member at once, and so many waits that are over.
pub(crate) const FOLLOW_UP_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::SystemEntropy;
    use crate::owner::ClientId;

    fn owner() -> Owner {
        Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy)
    }

    #[test]
    fn an_attempt_is_freed_once_and_after_its_answer() {
        let (mut traces, owner) = (Traces::default(), owner());
        let answered = CancellationToken::new();
        traces.asking(owner, answered);
        assert!(matches!(
            traces.begin_freeing(owner),
            Freeing::AfterAnswer(_)
        ));
        traces.answered(owner, true);
        assert!(matches!(
            traces.begin_freeing(owner),
            Freeing::Begin { doubtful: true }
        ));
        assert!(matches!(traces.begin_freeing(owner), Freeing::AlreadyBegun));
        traces.freed(owner);
        assert!(matches!(
            traces.begin_freeing(owner),
            Freeing::Begin { doubtful: false }
        ));
    }

    #[test]
    fn what_was_not_asked_need_not_be_freed_and_is_not_remembered_for_ever() {
        let mut traces = Traces::default();
        let owners: Vec<Owner> = (0..5000).map(|_| owner()).collect();
        for owner in &owners {
            traces.asking(*owner, CancellationToken::new());
            traces.not_asked(*owner);
            traces.answered(*owner, false);
        }
        assert!(matches!(
            traces.begin_freeing(owners[4999]),
            Freeing::NotNeeded
        ));
        assert!(matches!(
            traces.begin_freeing(owners[4999]),
            Freeing::NotNeeded
        ));
        assert!(matches!(
            traces.begin_freeing(owners[0]),
            Freeing::Begin { .. }
        ));
        assert_eq!(
            (traces.attempts.len(), traces.not_asked.len()),
            (1, NOT_ASKED_MAX)
        );
    }
}
