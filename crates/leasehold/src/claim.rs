use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::WallTime;
use crate::fence::Fence;
use crate::holder::ClientInfo;
use crate::key::Key;
use crate::owner::Owner;
use crate::permits::{Permits, Slot};
use crate::queue::Wait;

/// What one attempt asks of a store: this key, for this owner, in this mode, for this long.
///
/// The same claim names the lease afterwards, when it is renewed or released.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Claim {
    /// The lock.
    pub key: Key,
    /// The identity of the wait that this is an attempt of, and of the lease.
    pub owner: Owner,
    /// Alone, or together with others.
    pub mode: Mode,
    /// Which of the permits a lease is, in [`Mode::Permit`], where the store says so. An attempt takes any.
    pub slot: Option<Slot>,
    /// How long the lease lives at the store unless renewed; without meaning where it never ends.
    pub ttl: Duration,
    /// The last part of `ttl` that no guard makes use of: for so long the lock stays shut after an
    /// unclean end. A store need not know of it: it goes by `ttl` for how long a lease stands, and by
    /// [`Claim::term`] for how long anybody may be made to wait for it.
    pub delay: Duration,
    /// The client's wall clock when the attempt began. A store grants a fence greater than it and
    /// greater than every fence it granted before, which saves the order of fences even where a
    /// counter was lost.
    pub proposal: WallTime,
    /// Who is asking, for people who look at the lock.
    pub client: Arc<ClientInfo>,
    /// Whether the attempt is part of a wait, and how that goes on if the lock is held.
    pub wait: Wait,
    /// Whether a renewal may put the lease back on members that forgot it, beside a majority on which it
    /// stands. Not where another process could free it meanwhile: what is put back would come after.
    pub heals: bool,
}

impl Claim {
    /// The longest an attempt may take, whatever its TTL.
    pub const LIMIT_MAX: Duration = Duration::from_secs(2);

    /// A claim of `client` on `key`, exclusive, for `ttl`.
    pub fn new(
        key: Key,
        owner: Owner,
        ttl: Duration,
        proposal: WallTime,
        client: Arc<ClientInfo>,
    ) -> Self {
        Self {
            key,
            owner,
            mode: Mode::Exclusive,
            slot: None,
            ttl,
            delay: Duration::ZERO,
            proposal,
            client,
            wait: Wait::None,
            heals: true,
        }
    }

    /// The same claim as part of a wait.
    #[must_use]
    pub fn with_wait(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// The same claim, whose lease lives for `delay` more that no guard makes use of.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.ttl = self.term() + delay;
        self.delay = delay;
        self
    }

    /// How much of the lease's life a guard makes use of: all but the delay.
    pub fn term(&self) -> Duration {
        self.ttl.saturating_sub(self.delay)
    }

    /// How long the attempt may take: a third of the [term](Self::term), at most [`Claim::LIMIT_MAX`]. The
    /// client throws a later answer away, as too little of the lease is left.
    pub fn limit(&self) -> Duration {
        (self.term() / 3).min(Self::LIMIT_MAX)
    }

    /// The same claim for this permit.
    #[must_use]
    pub fn with_slot(mut self, slot: Slot) -> Self {
        self.slot = Some(slot);
        self
    }

    /// The same claim, which a renewal puts back nowhere.
    #[must_use]
    pub fn without_healing(mut self) -> Self {
        self.heals = false;
        self
    }

    /// The same claim in another mode.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }
}

/// A claim that was granted: what is to be renewed.
#[derive(Clone, Debug)]
pub struct Held {
    /// The claim as it was granted.
    pub claim: Arc<Claim>,
    /// The fence it was granted with.
    pub fence: Fence,
}

/// Whether a lock is held alone or together with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Nobody else holds the lock, in either mode.
    #[default]
    Exclusive,
    /// Others may hold it in shared mode too; nobody holds it in another.
    Shared,
    /// One of so many permits: others may hold the other ones; nobody holds the lock in another mode,
    /// or with another number of permits.
    Permit(Permits),
}

impl Mode {
    /// How many permits there are, in [`Mode::Permit`].
    pub fn permits(self) -> Option<Permits> {
        match self {
            Self::Permit(permits) => Some(permits),
            Self::Exclusive | Self::Shared => None,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("exclusive"),
            Self::Shared => f.write_str("shared"),
            Self::Permit(permits) => write!(f, "permit of {permits}"),
        }
    }
}
