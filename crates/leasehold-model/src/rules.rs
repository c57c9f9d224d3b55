//! The protocol as switches: the design, and each of its rules left out.

/// Every rule of the protocol that the model can leave out.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A fence that no majority answered is confirmed by a majority before it is used.
    pub confirmation: bool,
    /// Only members that granted are asked to confirm; otherwise all are.
    pub confirm_where_granted: bool,
    /// A member confirms a fence only while the claim still holds there.
    pub confirmation_checks_owner: bool,
    /// A member frees a lease only for its owner.
    pub release_checks_owner: bool,
    /// The answers that require a trusted member.
    pub trust: Trust,
    /// Whether and when a lease is put back where the key is free.
    pub repairing: Repairing,
    /// When the client's wall clock raises a counter.
    pub floor: Floor,
    /// Validity is counted from before the request was sent, not from the answer.
    pub deadline_from_sending: bool,
    /// Every attempt has an owner of its own; otherwise a client keeps one for all its attempts.
    pub owner_per_attempt: bool,
    /// A guard whose deadline passed stays lost, even if a late renewal succeeds.
    pub lost_is_final: bool,
    /// Spans of time, as clocks measure them.
    pub times: Times,
}

/// The answers for which clients ignore a member that may have forgotten leases.
#[derive(Clone, Copy, Debug)]
pub struct Trust {
    /// Its grants.
    pub grant: bool,
    /// Its answer that it confirmed a fence.
    pub confirmation: bool,
    /// Its answer that it still had a lease.
    pub renewal: bool,
    /// Its answer that the key is free and the lease may be put back, or that it put the lease back.
    pub repair: bool,
    /// After a member was out, only requests *sent* after its wait ended count; otherwise all
    /// requests that it executes after that count.
    pub sent_after_wait: bool,
    /// The counter step dies with the incarnation in which the lease was taken. Otherwise it runs in
    /// the next one, and the client trusts its answer as it trusted the lease.
    pub one_incarnation: bool,
    /// A member whose clock jumped is out for the waiting time, too.
    pub stepped_clock: bool,
}

/// What to do with a member where a renewal found the key free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repairing {
    /// Nothing.
    Never,
    /// If a majority still held the lease, the client puts it back there. The member counts from the
    /// next round on.
    NextRound,
    /// The renewal itself puts the lease back, and counts as if the lease had still been there.
    SameRound,
}

/// When the proposal, the client's wall clock, raises a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// In each counter step: `max(counter, proposal) + 1`.
    EveryStep,
    /// Only by a confirmation, and a confirmation happens only if the answers differ.
    Confirmation,
    /// Only by a confirmation, which is also needed if a counter was missing.
    ConfirmationOfMissing,
}

/// Spans of time in ticks, as a clock without error measures them.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// How long a member keeps a lease.
    pub ttl: u8,
    /// How long before the end of the lease a guard's deadline is.
    pub margin: u8,
    /// How long a member stays out after a restart.
    pub wait: u8,
    /// How far any clock may be off, either way, over such a span.
    pub drift: u8,
}

impl Times {
    /// True ticks after which a member with a fast clock may drop a lease.
    #[must_use]
    pub fn lease_may_end(&self) -> u8 {
        self.ttl - self.drift
    }

    /// True ticks after which the guard of a client with a slow clock is no longer valid.
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
    confirmation: true,
    confirm_where_granted: true,
    confirmation_checks_owner: true,
    release_checks_owner: true,
    trust: Trust {
        grant: true,
        confirmation: true,
        renewal: true,
        repair: true,
        sent_after_wait: true,
        one_incarnation: true,
        stepped_clock: true,
    },
    repairing: Repairing::NextRound,
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
