use std::collections::hash_map::Entry;

use tokio_util::sync::CancellationToken;

use crate::claim::{Claim, Mode};
use crate::error::Effect;
use crate::owner::{Owner, OwnerMap};
use crate::quorum::latest_owners::LatestOwners;

/// What attempts may have left at one member, so that each is freed rightly: after its own answer,
/// once, and not at all where it left nothing. Bounded, however long a member stays silent.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    attempts: OwnerMap<Trace>,
    /// Leases that are being renewed, and may be put back where they were forgotten: not in another
    /// mode than that of the last renewal.
    renewing: OwnerMap<Mode>,
    /// The latest attempts that left nothing; of earlier ones a release is sent in vain.
    left_nothing: LatestOwners,
}

#[derive(Clone, Debug)]
enum Trace {
    /// Asked, not answered yet.
    Asking(Asked),
    /// No answer came: the request may take effect at any time until its TTL.
    Doubtful,
    /// Being freed.
    Freeing,
}

#[derive(Clone, Debug, Default)]
struct Asked {
    /// How many requests are under way besides the first.
    others: u32,
    left: Left,
    /// Cancelled with the last answer; made for whoever first waits for it.
    answered: Option<CancellationToken>,
}

/// What an attempt may have left, once it is answered: of several requests of one, the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Left {
    /// Nothing was sent, or the lock was busy.
    #[default]
    Nothing,
    Lease,
    /// No answer came.
    Unknown,
}

impl From<Effect> for Left {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Unknown => Self::Unknown,
            Effect::None => Self::Nothing,
        }
    }
}

/// What is to be done to free an attempt.
#[derive(Debug)]
pub(crate) enum Freeing {
    /// Wait until the token is cancelled, then ask again.
    AfterAnswer(CancellationToken),
    /// It left nothing, or it is being freed already.
    NotNeeded,
    AlreadyBegun,
    /// Free it now; again later, if it is doubtful whether it has taken effect yet.
    Begin {
        doubtful: bool,
    },
}

impl Traces {
    /// Asked, or asked once more: it may leave something now, whatever was answered before.
    pub(crate) fn asking(&mut self, owner: Owner) {
        self.left_nothing.remove(owner);
        match self.attempts.get_mut(&owner) {
            None => {
                let asked = Trace::Asking(Asked::default());
                self.attempts.insert(owner, asked);
            }
            Some(Trace::Asking(asked)) => asked.others += 1,
            Some(trace) => {
                // Whatever is answered now, an earlier request may have left one.
                let left = Left::Lease;
                *trace = Trace::Asking(Asked {
                    left,
                    ..Asked::default()
                });
            }
        }
    }

    /// Cancelled once the attempt that is under way is answered.
    pub(crate) fn being_asked(&mut self, owner: Owner) -> Option<CancellationToken> {
        match self.attempts.get_mut(&owner) {
            Some(Trace::Asking(asked)) => Some(asked.answered()),
            _ => None,
        }
    }

    /// Nothing was sent: whoever frees it later is to know.
    pub(crate) fn not_asked(&mut self, owner: Owner) {
        self.left_nothing.insert(owner);
    }

    /// Gives the token of those who wait for the answer, to be cancelled.
    pub(crate) fn answered(&mut self, owner: Owner, left: Left) -> Option<CancellationToken> {
        let Entry::Occupied(mut trace) = self.attempts.entry(owner) else {
            return None;
        };
        let Trace::Asking(asked) = trace.get_mut() else {
            return None;
        };
        asked.left = asked.left.max(left);
        if asked.others > 0 {
            asked.others -= 1;
            return None;
        }
        let (answered, left) = (asked.answered.take(), asked.left);
        if left == Left::Unknown {
            trace.insert(Trace::Doubtful);
        } else {
            trace.remove();
        }
        if left == Left::Nothing && answered.is_some() {
            self.not_asked(owner);
        }
        answered
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
        let doubtful = match self.attempts.get_mut(&owner) {
            Some(Trace::Asking(asked)) => return Freeing::AfterAnswer(asked.answered()),
            Some(Trace::Freeing) => return Freeing::AlreadyBegun,
            Some(Trace::Doubtful) => true,
            None if self.left_nothing.contains(owner) => return Freeing::NotNeeded,
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

impl Asked {
    fn answered(&mut self) -> CancellationToken {
        self.answered.get_or_insert_default().clone()
    }
}

/// So many attempts are followed up at one member at once, and so many waits that are over.
pub(crate) const FOLLOW_UP_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::ambient::{Ambient, SystemEntropy};
    use crate::holder::ClientInfo;
    use crate::key::Key;
    use crate::owner::ClientId;

    fn owner() -> Owner {
        Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy)
    }

    #[test]
    fn an_attempt_is_freed_once_and_after_its_answer() {
        let (mut traces, owner) = (Traces::default(), owner());
        traces.asking(owner);
        let Freeing::AfterAnswer(answered) = traces.begin_freeing(owner) else {
            panic!("it is still being asked");
        };
        let told = traces
            .answered(owner, Left::Unknown)
            .expect("somebody waits for it");
        told.cancel();
        assert!(answered.is_cancelled());
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
    fn what_is_asked_twice_at_once_is_freed_after_both_answers() {
        let (mut traces, owner) = (Traces::default(), owner());
        traces.asking(owner);
        traces.asking(owner);
        assert!(traces.being_asked(owner).is_some());
        assert!(
            traces.answered(owner, Left::Unknown).is_none(),
            "one is under way"
        );
        assert!(traces.answered(owner, Left::Lease).is_some());
        assert!(matches!(
            traces.begin_freeing(owner),
            Freeing::Begin { doubtful: true }
        ));
    }

    #[test]
    fn who_waits_to_free_what_was_refused_need_not() {
        let (mut traces, owner) = (Traces::default(), owner());
        for (answers, is_left) in [
            (&[Left::Nothing][..], false),
            (&[Left::Lease], true),
            (&[Left::Lease, Left::Nothing], true),
            (&[Left::Nothing, Left::Nothing], false),
        ] {
            answers.iter().for_each(|_| traces.asking(owner));
            let freeing = traces.begin_freeing(owner);
            assert!(matches!(freeing, Freeing::AfterAnswer(_)));
            for left in answers {
                traces.answered(owner, *left);
            }
            let freeing = traces.begin_freeing(owner);
            let begins = matches!(freeing, Freeing::Begin { doubtful: false });
            assert_eq!(begins, is_left, "{answers:?}");
            traces = Traces::default();
        }
    }

    #[test]
    fn what_is_asked_once_more_is_freed_whatever_is_answered_then() {
        let (mut traces, owner) = (Traces::default(), owner());
        traces.asking(owner);
        traces.answered(owner, Left::Unknown);
        traces.asking(owner);
        let freeing = traces.begin_freeing(owner);
        assert!(matches!(freeing, Freeing::AfterAnswer(_)));
        traces.answered(owner, Left::Nothing);
        let freeing = traces.begin_freeing(owner);
        assert!(matches!(freeing, Freeing::Begin { .. }), "{freeing:?}");
    }

    #[test]
    fn what_was_refused_and_is_granted_later_is_freed() {
        let (mut traces, owner) = (Traces::default(), owner());
        traces.asking(owner);
        assert!(traces.being_asked(owner).is_some(), "somebody waits for it");
        traces.answered(owner, Left::Nothing);
        traces.asking(owner);
        traces.answered(owner, Left::Lease);
        let freeing = traces.begin_freeing(owner);
        assert!(matches!(freeing, Freeing::Begin { .. }), "{freeing:?}");
    }

    #[test]
    fn what_is_given_back_is_put_back_nowhere_from_then_on() {
        let ambient = Ambient::default();
        let info = Arc::new(ClientInfo::of_this_process(&ambient, None));
        let (key, wall) = (Key::new("lock").unwrap(), ambient.clock.wall());
        let ttl = Duration::from_secs(30);
        let claim = Claim::new(key, owner(), ttl, wall, info);
        let mut traces = Traces::default();
        traces.renewing(&claim);
        assert!(traces.is_renewing(&claim));
        traces.begin_freeing(claim.owner);
        assert!(!traces.is_renewing(&claim), "its renewal is under way");
        traces.renewing(&claim);
        assert!(!traces.is_renewing(&claim), "its renewal begins late");
        traces.freed(claim.owner);
    }

    #[test]
    fn what_was_not_asked_need_not_be_freed_and_is_not_remembered_for_ever() {
        let mut traces = Traces::default();
        let owners: Vec<Owner> = (0..5000).map(|_| owner()).collect();
        for owner in &owners {
            traces.asking(*owner);
            traces.not_asked(*owner);
            traces.answered(*owner, Left::Nothing);
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
        assert_eq!(traces.attempts.len(), 1);
    }
}
