use futures_util::FutureExt;
use leasehold::{
    Attempt, CardEdit, Claim, Error, Fence, Held, Holder, Key, Life, Member, MemberId, MemoryStore,
    Owner, Presence, Release, Renewal, Sampled, Seal, Store,
};

use super::history::Kind;

/// What a member is asked, as a message that can be late or come twice.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Acquire(Claim),
    Renew(Vec<Held>),
    Release(Claim),
    Seal(Claim, Fence),
    Heal(Vec<Held>),
    Presence,
    WriteCard(CardEdit),
    Witness(Vec<(MemberId, Life)>),
    Holders(Key),
    List(String, usize),
}

/// What a member answers.
#[derive(Debug)]
pub(crate) enum Answer {
    Acquire(Result<Attempt, Error>),
    Renew(Result<Sampled<Vec<Renewal>>, Error>),
    Release(Result<Release, Error>),
    Seal(Result<Sampled<Seal>, Error>),
    Heal(Result<(), Error>),
    Presence(Result<Presence, Error>),
    WriteCard(Result<bool, Error>),
    Witness(Result<(), Error>),
    Holders(Result<Vec<Holder>, Error>),
    List(Result<Vec<Key>, Error>),
}

impl Request {
    /// Lets `store` carry it out.
    pub(crate) fn execute(&self, store: &MemoryStore) -> Answer {
        match self {
            Self::Acquire(claim) => Answer::Acquire(at_once(store.acquire(claim))),
            Self::Renew(leases) => Answer::Renew(at_once(store.renew_sampled(leases))),
            Self::Release(claim) => Answer::Release(at_once(store.release(claim))),
            Self::Seal(claim, fence) => Answer::Seal(at_once(store.seal(claim, *fence))),
            Self::Heal(leases) => Answer::Heal(at_once(store.heal(leases))),
            Self::Presence => Answer::Presence(at_once(store.presence())),
            Self::WriteCard(edit) => Answer::WriteCard(at_once(store.write_card(edit))),
            Self::Witness(seen) => Answer::Witness(at_once(store.witness(seen))),
            Self::Holders(key) => Answer::Holders(at_once(store.holders(key))),
            Self::List(prefix, limit) => Answer::List(at_once(store.list(prefix, *limit))),
        }
    }

    /// Whether it can put a lease where none was: a connection on which it was not answered is
    /// given up.
    pub(crate) fn puts_lease(&self) -> bool {
        matches!(self, Self::Acquire(_) | Self::Heal(_))
    }

    /// What it does to the member's card, in words.
    pub(crate) fn on_card(&self) -> Option<String> {
        match self {
            Self::WriteCard(edit) => Some(format!(
                "writes life {} of run {}, age {:?}, over {:?}",
                edit.life, edit.run, edit.age, edit.expected
            )),
            Self::Witness(seen) => Some(format!("tells of {seen:?}")),
            _ => None,
        }
    }

    /// The kind of request, and the claims that it is about.
    pub(crate) fn claims(&self) -> Option<(Kind, Vec<(&Key, Owner)>)> {
        match self {
            Self::Acquire(claim) => Some((Kind::Acquire, vec![(&claim.key, claim.owner)])),
            Self::Release(claim) => Some((Kind::Release, vec![(&claim.key, claim.owner)])),
            Self::Seal(claim, _) => Some((Kind::Seal, vec![(&claim.key, claim.owner)])),
            Self::Renew(leases) => Some((Kind::Renew, claims_of(leases))),
            Self::Heal(leases) => Some((Kind::Heal, claims_of(leases))),
            _ => None,
        }
    }
}

fn claims_of(leases: &[Held]) -> Vec<(&Key, Owner)> {
    let claims = leases.iter().map(|held| &held.claim);
    claims.map(|claim| (&claim.key, claim.owner)).collect()
}

fn at_once<T>(answering: impl Future<Output = T>) -> T {
    answering
        .now_or_never()
        .expect("the memory store answers at once")
}
