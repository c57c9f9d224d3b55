//! What every client and every member knows at one instant, in as little space as possible.
//!
//! Time is stored as ages, in true ticks, and only as long as they make a difference. So states
//! that differ only by their age are one, and runs need no bound on time.

/// Room for attempts; `Bounds::attempts` says how many are used.
pub const ATTEMPTS: usize = 3;
/// Room for rounds of renewal.
pub const ROUNDS: usize = 2;

/// Everything at one instant.
#[derive(Clone, Copy, Debug)]
pub struct ModelState<const N: usize> {
    /// The members.
    pub members: [Member; N],
    /// The attempts, in the order in which they start.
    pub attempts: [Attempt; ATTEMPTS],
    /// The wall clock at the last start of an attempt, in ticks that tell attempts apart.
    pub wall: u8,
    /// Ticks since then, up to the number that still tells attempts apart.
    pub since_start: u8,
    /// The greatest fence of any guard so far.
    pub greatest: u8,
    /// What may still happen.
    pub left: Left,
}

/// Mishaps that may still happen.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// Restarts.
    pub restarts: u8,
    /// Jumps of a member's clock.
    pub jumps: u8,
    /// Requests executed twice.
    pub repeats: u8,
}

/// One member, and its talk with each attempt.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The key's counter.
    pub counter: u8,
    /// The lease on the key.
    pub lease: Option<Lease>,
    /// Whether it may have forgotten leases.
    pub trust: MemberTrust,
    /// Its talk with each attempt.
    pub talks: [Talk; ATTEMPTS],
}

/// A lease at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The attempt that took it.
    pub attempt: u8,
    /// Ticks since it was taken or renewed, up to the age at which it may end.
    pub age: u8,
}

/// Whether a member may have forgotten leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberTrust {
    /// It never did.
    Sound,
    /// It did this many ticks ago, and is out.
    Out(u8),
    /// Its wait is over.
    Back,
}

/// Requests of one attempt to one member, and what the client knows of their answers. The client
/// reads an answer when it acts on it, so an answer can be arbitrarily old.
#[derive(Clone, Copy, Debug)]
pub struct Talk {
    /// Whether the client knows the member.
    pub listed: bool,
    /// The request for a lease.
    pub acquire: Acquire,
    /// Whether the attempt was sent before the member's wait ended.
    pub barred: bool,
    /// The request to confirm the fence.
    pub confirmation: Confirmation,
    /// Each round's request to renew.
    pub renewals: [Renewal; ROUNDS],
    /// The request to put the lease back.
    pub repair: Repair,
}

/// The request for a lease: taking it and the counter step are two steps at the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquire {
    /// Never sent, or no longer able to have an effect.
    Gone,
    /// On its way.
    Sent,
    /// The member took the lease; the counter step is next.
    Taken,
    /// Another attempt held it; the counter step is next.
    Busy,
    /// Answered with this fence, and it counts.
    Granted(u8),
    /// Answered by a member that is out. This is no grant, but a client without the rule asks it to
    /// confirm.
    GrantedOut,
}

/// The request to confirm the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// Never sent, or no longer able to have an effect.
    Gone,
    /// On its way.
    Sent,
    /// The member has the fence, and it counts.
    Counted,
}

/// A request to renew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// Never sent, or no longer able to have an effect.
    Gone,
    /// On its way.
    Sent,
    /// On its way since before the member's wait ended.
    SentBarred,
    /// The member still had the lease, and it counts.
    Stood,
    /// The key was free there, so the lease may be put back.
    Free,
}

/// The request to put the lease back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Never sent, or no longer able to have an effect.
    Gone,
    /// On its way.
    Sent,
    /// Done while the guard was valid.
    Done,
}

/// One attempt to take the lock, and the guard that it led to.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// How far it has come.
    pub phase: Phase,
    /// Ticks since the request was sent from which validity counts.
    pub age: u8,
    /// The client's wall clock.
    pub proposal: u8,
    /// The fence, once there is one.
    pub fence: u8,
    /// Rounds of renewal sent.
    pub rounds: u8,
    /// Ticks since the last one was sent, while its answers may still count.
    pub round_age: Option<u8>,
}

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not sent yet.
    Unsent,
    /// Grants are coming in.
    Asking,
    /// The fence is being confirmed.
    Confirming,
    /// The guard is valid.
    Valid,
    /// The guard's deadline passed while a renewal was under way, and the rules forgive that.
    Expired,
    /// Given up, released or expired. Its requests may still arrive.
    Ended,
}

impl Member {
    /// Whether it is out.
    #[must_use]
    pub fn is_out(&self) -> bool {
        matches!(self.trust, MemberTrust::Out(_))
    }
}

impl Attempt {
    /// Whether grants and confirmations still matter to it.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self.phase, Phase::Asking | Phase::Confirming)
    }

    /// Whether any answer still matters to it.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !matches!(self.phase, Phase::Unsent | Phase::Ended)
    }
}
