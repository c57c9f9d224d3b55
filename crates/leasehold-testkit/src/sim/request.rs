use futures_util::FutureExt;
use leasehold::{
    Admin, Attempt, BreakRecord, Broken, CardEdit, Claim, Departure, Error, Fence, Held, Holder,
    Inspection, Key, Life, Member, MemberId, MemoryStore, Owner, Pattern, Presence, Release,
    Renewal, Sampled, Seal, Store, Survey, Ticket, Turn, Waiter,
};

use super::execution::Kind;

/// What a member is asked, as a message that can be late or come twice.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Acquire(Claim),
    AcquireInTurn(Claim, Turn),
    Renew(Vec<Held>),
    Release(Claim),
    Depart(Claim, Departure),
    LeaveQueue(Key, Owner),
    Seal(Claim, Fence),
    Heal(Vec<Held>),
    Presence,
    WriteCard(CardEdit),
    Witness(Vec<(MemberId, Life)>),
    Holders(Key),
    Waiters(Key),
    List(String, usize),
    Survey(Pattern, usize),
    Break(Key, BreakRecord),
    LastBreak(Key),
}

/// What a member answers.
#[derive(Debug)]
pub(crate) enum Answer {
    Acquire(Result<Attempt, Error>),
    Renew(Result<Sampled<Vec<Renewal>>, Error>),
    Release(Result<Release, Error>),
    LeaveQueue(Result<(), Error>),
    Seal(Result<Sampled<Seal>, Error>),
    Heal(Result<(), Error>),
    Presence(Result<Presence, Error>),
    WriteCard(Result<bool, Error>),
    Witness(Result<(), Error>),
    Holders(Result<Vec<Holder>, Error>),
    Waiters(Result<Vec<Waiter>, Error>),
    List(Result<Vec<Key>, Error>),
    Survey(Result<Survey, Error>),
    Break(Result<Broken, Error>),
    LastBreak(Result<Option<BreakRecord>, Error>),
}

impl Request {
    /// Lets `store` carry it out.
    pub(crate) fn execute(&self, store: &MemoryStore) -> Answer {
        match self {
            Self::Acquire(claim) => Answer::Acquire(at_once(store.acquire(claim))),
            Self::AcquireInTurn(claim, turn) => {
                Answer::Acquire(at_once(store.acquire_in_turn(claim, turn)))
            }
            Self::Renew(leases) => Answer::Renew(at_once(store.renew_sampled(leases))),
            Self::Release(claim) => Answer::Release(at_once(store.release(claim))),
            Self::Depart(claim, departure) => {
                Answer::Release(at_once(store.depart(claim, departure)))
            }
            Self::LeaveQueue(key, waiter) => {
                Answer::LeaveQueue(at_once(store.leave_queue(key, *waiter)))
            }
            Self::Seal(claim, fence) => Answer::Seal(at_once(store.seal(claim, *fence))),
            Self::Heal(leases) => Answer::Heal(at_once(store.heal(leases))),
            Self::Presence => Answer::Presence(at_once(store.presence())),
            Self::WriteCard(edit) => Answer::WriteCard(at_once(store.write_card(edit))),
            Self::Witness(seen) => Answer::Witness(at_once(store.witness(seen))),
            Self::Holders(key) => Answer::Holders(at_once(store.holders(key))),
            Self::Waiters(key) => Answer::Waiters(at_once(store.waiters(key))),
            Self::List(prefix, limit) => Answer::List(at_once(store.list(prefix, *limit))),
            Self::Survey(pattern, limit) => Answer::Survey(at_once(store.survey(pattern, *limit))),
            Self::Break(key, record) => Answer::Break(at_once(store.break_lease(key, record))),
            Self::LastBreak(key) => Answer::LastBreak(at_once(store.last_break(key))),
        }
    }

    /// Whether it can put a lease where none was: a connection on which it was not answered is
    /// given up.
    pub(crate) fn puts_lease(&self) -> bool {
        self.attempt().is_some() || matches!(self, Self::Heal(_))
    }

    /// The claim of an attempt.
    pub(crate) fn attempt(&self) -> Option<&Claim> {
        match self {
            Self::Acquire(claim) | Self::AcquireInTurn(claim, _) => Some(claim),
            _ => None,
        }
    }

    /// The place in the queue that it asks for.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::AcquireInTurn(_, Turn::Queued(ticket)) => Some(*ticket),
            _ => None,
        }
    }

    /// The lock that is to be left free for a moment.
    pub(crate) fn leaves_free(&self) -> Option<&Key> {
        match self {
            Self::Depart(claim, Departure::LeaveFree(_)) => Some(&claim.key),
            _ => None,
        }
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
            Self::Acquire(claim) | Self::AcquireInTurn(claim, _) => {
                Some((Kind::Acquire, vec![(&claim.key, claim.owner)]))
            }
            Self::Release(claim) | Self::Depart(claim, _) => {
                Some((Kind::Release, vec![(&claim.key, claim.owner)]))
            }
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
