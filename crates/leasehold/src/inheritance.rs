use std::sync::Arc;
use std::time::Duration;

use crate::claim::Claim;
use crate::clock::BootInstant;

/// A lease that goes over, as it stands, from one guard of a client to the next.
///
/// Nothing changes at the store: it is one lease, of one owner, and its client sees to it that it has
/// one guard at a time, each with a greater fence.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inheritance {
    /// The claim under which the lease stands, with the times of whoever holds it.
    pub claim: Arc<Claim>,
    /// The instant until which it may be believed in, unless it is renewed.
    pub deadline: BootInstant,
    /// When it is to be renewed next.
    pub renew_at: BootInstant,
}

impl Inheritance {
    /// The lease of `claim` as its holder leaves it.
    pub fn new(claim: Arc<Claim>, deadline: BootInstant, renew_at: BootInstant) -> Self {
        Self {
            claim,
            deadline,
            renew_at,
        }
    }

    /// Whether it is of use for who wants such a lease: no longer, or others would be kept out too long if
    /// that one died; with the same delay, which is to hold from the first moment; and with half of it left.
    pub(crate) fn suits(&self, wanted: Wanted, now: BootInstant) -> bool {
        let ours = Wanted::by(&self.claim);
        ours.ttl <= wanted.ttl
            && ours.delay == wanted.delay
            && self.deadline.since(now) >= (wanted.ttl - wanted.delay) / 2
    }

    /// What `heir` gets. Where it wants a lease of another length, it is renewed for that at once.
    pub(crate) fn for_heir(&self, heir: &Claim, now: BootInstant) -> Self {
        let is_alike = heir.ttl == self.claim.ttl;
        let claim = Claim {
            ttl: heir.ttl,
            wait: heir.wait,
            ..(*self.claim).clone()
        };
        Self {
            claim: Arc::new(claim),
            deadline: self.deadline,
            renew_at: if is_alike { self.renew_at } else { now },
        }
    }
}

/// What lease a claim asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    ttl: Duration,
    delay: Duration,
}

impl Wanted {
    pub(crate) fn by(claim: &Claim) -> Self {
        Self {
            ttl: claim.ttl,
            delay: claim.delay,
        }
    }
}

/// The same lease, left in the same state.
impl PartialEq for Inheritance {
    fn eq(&self, other: &Self) -> bool {
        let parts = |it: &Self| (it.claim.owner, it.deadline, it.renew_at);
        parts(self) == parts(other)
    }
}

impl Eq for Inheritance {}
