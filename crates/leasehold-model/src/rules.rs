//! The protocol as switches: the design, and each of its rules left out.

/// Every rule of the protocol that the model can leave out.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A fence that no majority answered is sealed by a majority before it is used.
    pub seal: bool,
    /// Only members that granted are asked to seal; otherwise all are.
    pub seal_where_granted: bool,
    /// A member seals a fence only while the claim still holds there.
    pub seal_checks_owner: bool,
    /// A member frees a lease only for its owner.
    pub release_checks_owner: bool,
    /// Where it is asked whether a member is trusted.
    pub trust: Trust,
    /// Whether and when a lease is put back where the key is free.
    pub healing: Healing,
    /// Where the client's wall clock raises a counter.
    pub floor: Floor,
    /// Validity is counted from before the request was sent, not from the answer.
    pub deadline_from_sending: bool,
    /// Every attempt has an owner of its own; otherwise a client keeps one for all its attempts.
    pub owner_per_attempt: bool,
    /// A guard whose deadline passed stays lost, whatever a late renewal says.
    pub lost_is_final: bool,
    /// Spans of time, as clocks measure them.
    pub times: Times,
}

/// At which of its words a member that may have forgotten leases is left out.
#[derive(Clone, Copy, Debug)]
pub struct Trust {
    /// Its grants.
    pub grant: bool,
    /// Its word that it sealed a fence.
    pub seal: bool,
    /// Its word that a lease still stood there.
    pub renewal: bool,
    /// Its word that the key is free and the lease may be put back, or that it put it back.
    pub heal: bool,
    /// A member that was out counts only in what was *sent* after its wait ended; otherwise in
    /// all that it executes after that.
    pub sent_after_wait: bool,
    /// The counter step dies with the incarnation in which the lease was taken; otherwise it runs
    /// in the next one, and its answer is trusted as the lease was.
    pub one_incarnation: bool,
    /// A member whose clock jumped is out for the waiting time, too.
    pub stepped_clock: bool,
}

/// What becomes of a member that a renewal found free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Healing {
    /// Nothing.
    Never,
    /// Beside a majority that still held the lease it is put back, and counts from the next round
    /// on.
    NextRound,
    /// The renewal itself puts it back, and counts it as if it had stood.
    SameRound,
}

/// Where the proposal, the client's wall clock, raises a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// In each counter step: `max(counter, proposal) + 1`.
    EveryStep,
    /// Only by a seal, and a seal only where the answers differ.
    Seal,
    /// Only by a seal, which is needed too where a counter was missing.
    SealOfMissing,
}

/// Spans of time in ticks, as a clock without error measures them.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// How long a member keeps a lease.
    pub ttl: u8,
    /// By how much a guard's deadline lies before the end of the lease.
    pub margin: u8,
    /// How long a member stays out after a restart.
    pub wait: u8,
    /// By how much any clock may be off, either way, over such a span.
    pub drift: u8,
}

impl Times {
    /// True ticks after which a member with a fast clock may drop a lease.
    #[must_use]
    pub fn lease_may_end(&self) -> u8 {
        self.ttl - self.drift
    }

    /// True ticks after which the guard of a client with a slow clock is not valid any more.
    #[must_use]
    pub fn guard_ends(&self) -> u8 {
        self.ttl - self.margin + self.drift
    }

    /// True ticks after which a client with a fast clock may trust a member again.
    #[must_use]
    pub fn wait_may_end(&self) -> u8 {
        self.wait.saturating_sub(self.drift)
    }
}

/// The rules of the design.
pub const DESIGN: Rules = Rules {
    seal: true,
    seal_where_granted: true,
    seal_checks_owner: true,
    release_checks_owner: true,
    trust: Trust {
        grant: true,
        seal: true,
        renewal: true,
        heal: true,
        sent_after_wait: true,
        one_incarnation: true,
        stepped_clock: true,
    },
    healing: Healing::NextRound,
    floor: Floor::EveryStep,
    deadline_from_sending: true,
    owner_per_attempt: true,
    lost_is_final: true,
    times: Times {
        ttl: 3,
        margin: 2,
        wait: 4,
        drift: 1,
    },
};
