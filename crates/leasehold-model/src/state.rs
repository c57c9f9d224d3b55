//! What every client and every member knows at one instant.
//!
//! Time is stored as ages, in true ticks, and only as long as they make a difference. So states that differ only by their
//! age are one, and runs need no bound on time.

use std::hash::{Hash, Hasher};

/// Members of the quorum.
pub const MEMBERS: usize = 3;
/// Votes that decide.
pub const MAJORITY: usize = 2;
/// Room for attempts.
pub const ATTEMPTS: usize = 3;
/// True ticks after which a member with a fast clock may drop a lease.
pub const LEASE: u8 = 2;

/// Everything at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// The members.
    pub members: [Member; MEMBERS],
    /// The attempts, in the order in which they start.
    pub attempts: [Attempt; ATTEMPTS],
    /// The wall clock at the last start of an attempt, in ticks that tell attempts apart.
    pub wall: u8,
    /// Ticks since then, up to the number that still tells attempts apart.
    pub since_start: u8,
    /// The greatest fence of any guard so far.
    pub greatest: u8,
    /// Mishaps that may still happen.
    pub mishaps: u8,
    /// The promise that the last step broke.
    pub broken: Option<Promise>,
}

/// One member, and its talk with each attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The key's counter.
    pub counter: u8,
    /// The lease on the key.
    pub lease: Option<Lease>,
    /// Ticks since it may have forgotten leases, while it has no vote.
    pub out: Option<u8>,
    /// Its talk with each attempt.
    pub talks: [Talk; ATTEMPTS],
}

/// A lease at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    /// The attempt that took it.
    pub attempt: usize,
    /// Ticks since it was taken or renewed. From [`LEASE`] on it may end.
    pub age: u8,
}

/// Requests of one attempt to one member, and what the client makes of their answers. A request may arrive at any later
/// step or never. The client reads an answer when it acts on it, so an answer can be arbitrarily old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Talk {
    /// The requests for a lease and for a confirmation.
    pub acquire: Acquire,
    /// The request of the open round of renewal.
    pub renewal: Renewal,
    /// The fence of a request to put the lease back that is on its way, or 0.
    pub repair: u8,
    /// The client sent what it waits for before the member's wait ended.
    pub barred: bool,
}

/// How far the requests for a lease and for a confirmation of its fence are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Acquire {
    /// Never sent, or without an effect from now on.
    #[default]
    Gone,
    /// On its way, with this proposal.
    Sent(u8),
    /// The member took the lease; the draw of a fence is next.
    Taken(u8),
    /// Another owner held it; the counter may still be raised.
    Busy(u8),
    /// Granted with this fence; with 0 if the member has no vote, but a client without a rule asks it to confirm.
    Granted(u8),
    /// The request to confirm this fence is on its way.
    Confirming(u8),
    /// The member has the fence, and that counts.
    Confirmed,
}

/// How far a request to renew is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Renewal {
    /// None, or without an effect.
    #[default]
    Gone,
    /// On its way.
    Sent,
    /// The member extended the lease, and that counts.
    Renewed,
    /// The key was free there, so the lease may be put back.
    Free,
}

/// One attempt to take the lock, and the guard that it led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    /// How far it has come.
    pub phase: Phase,
    /// Ticks since the request was sent from which validity counts.
    pub age: u8,
    /// The fence, while it matters.
    pub fence: u8,
    /// Rounds of renewal sent.
    pub rounds: u8,
    /// Ticks since the last one was sent, while its answers may still count.
    pub round: Option<u8>,
}

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Not sent yet.
    #[default]
    Unsent,
    /// Grants are coming in.
    Asking,
    /// The fence is being confirmed.
    Confirming,
    /// The guard is valid.
    Valid,
    /// Given up, released or expired. Its requests may still arrive.
    Ended,
}

/// A promise of the protocol, by the invariant in `ARCHITECTURE.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Promise {
    /// I1: no two guards are valid at once.
    Exclusion,
    /// I2: no later grant has a smaller fence.
    FenceOrder,
    /// I2: no later grant has the same fence.
    FenceUnique,
    /// I4: a client frees only its own lease.
    OwnRelease,
    /// I6: a guard that ended is never valid again.
    Finality,
}

/// States that differ only in the names of members, or of attempts, are one. Without `OwnerPerAttempt`, attempts differ in
/// more, so that search may miss a history.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let mut order = [0, 1, 2].map(|a| {
            let mut talks = self.members.map(|member| (member.talks[a], member.counter));
            talks.sort_unstable();
            (self.attempts[a], talks, a)
        });
        order.sort_unstable();
        let mut members = self.members.map(|member| Member {
            talks: order.map(|(.., was)| member.talks[was]),
            lease: member.lease.map(|lease| Lease {
                attempt: order
                    .iter()
                    .position(|it| it.2 == lease.attempt)
                    .unwrap_or(0),
                ..lease
            }),
            ..member
        });
        members.sort_unstable();
        (members, order.map(|it| it.0), self.wall, self.since_start).hash(hasher);
        (self.greatest, self.mishaps, self.broken).hash(hasher);
    }
}

impl State {
    /// Counts the members whose talk with the attempt is like this.
    pub(crate) fn count(&self, a: usize, like: impl Fn(&Talk) -> bool) -> usize {
        let talks = self.members.iter().map(|member| &member.talks[a]);
        talks.filter(|talk| like(talk)).count()
    }

    /// The leases of an attempt.
    pub(crate) fn leases(&mut self, a: usize) -> impl Iterator<Item = &mut Lease> {
        let leases = self.members.iter_mut().filter_map(|it| it.lease.as_mut());
        leases.filter(move |lease| lease.attempt == a)
    }
}

impl Attempt {
    /// Whether grants and confirmations still matter to it.
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.phase, Phase::Asking | Phase::Confirming)
    }
}
