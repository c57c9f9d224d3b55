use std::fmt;
use std::time::Duration;

use crate::instants::WallTime;
use crate::{ClientInfo, Fence, Mode, Owner};

/// One holder of a lock, with what the store knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Exclusive, shared, or with a permit.
    pub mode: Mode,
    /// The owner that was granted the lock; `None` if another library holds it.
    pub owner: Option<Owner>,
    /// The holder's client; `None` if it is unknown, or if another library holds the lock.
    pub client: Option<ClientInfo>,
    /// The fence of the grant, if the store keeps it.
    pub fence: Option<Fence>,
    /// The time of the grant, by the wall clock of the holder.
    pub since: Option<WallTime>,
    /// How long the holder's lease lives unless renewed; `None` if it has no end.
    pub remaining: Option<Duration>,
    /// The form of the value under the lock's name, if another library wrote it.
    pub form: Option<&'static str>,
    /// An operator broke the lease. The holder no longer has the lock, and learns this from its next
    /// renewal. The lock stays unavailable until the lease would have ended.
    pub broken: bool,
}

impl Holder {
    /// Returns the holder `owner` in this mode.
    pub fn of(owner: Owner, mode: Mode) -> Self {
        Self {
            owner: Some(owner),
            since: owner.plausible_since(),
            ..Self::unknown(mode)
        }
    }

    /// Sets `since` to the time of the grant, if the fence shows it. An owner contains only the instant
    /// at which its wait began. Its fence is the time of its grant, unless another client's clock is
    /// ahead. A fence that is much later than the start of the wait says nothing.
    pub fn count_from_grant(&mut self) {
        let (Some(since), Some(fence)) = (self.since, self.fence) else {
            return;
        };
        let granted = WallTime::from_micros(fence.get());
        let is_plausible = granted.distance(since) < Self::WAIT_MAX;
        if granted.as_micros() > since.as_micros() && is_plausible {
            self.since = Some(granted);
        }
    }

    /// The longest wait whose end is read from a fence.
    const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// Returns a holder with nothing but its mode.
    pub fn unknown(mode: Mode) -> Self {
        Self {
            mode,
            owner: None,
            client: None,
            fence: None,
            since: None,
            remaining: None,
            form: None,
            broken: false,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.client, self.owner) {
            (Some(client), _) => client.fmt(f),
            (None, Some(owner)) => write!(f, "client {}", owner.client()),
            (None, None) => f.write_str("a client of another library"),
        }
    }
}
