//! What is in the nodes, as JSON, so that an operator can read it with any client.

use std::time::Duration;

use leasehold::look::{BreakRecord, ClientInfo};
use leasehold::store::LockRequest;
use leasehold::{Error, ErrorKind, Fence};
use serde::{Deserialize, Serialize};

/// The data of a node in a queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct NodeData {
    /// The client that holds or waits.
    pub(super) client: ClientInfo,
    /// For how long at most its client believes in the lease after each renewal, in milliseconds.
    pub(super) ttl_ms: u64,
    /// The fence, once the lock was granted. That of a waiter is a draw in advance, which does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fence: Option<u64>,
    /// Whether an exclusive holder shares the lock now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) shared: bool,
}

impl NodeData {
    /// Returns the data for a request in a session with this timeout.
    pub(super) fn of(request: &LockRequest, timeout: Duration) -> Self {
        let ttl = request.ttl.min(timeout).as_millis();
        Self {
            client: (*request.client).clone(),
            ttl_ms: u64::try_from(ttl).unwrap_or(u64::MAX),
            fence: None,
            shared: false,
        }
    }

    pub(super) fn granted(mut self, fence: Fence) -> Self {
        self.fence = Some(fence.get());
        self
    }

    pub(super) fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    pub(super) fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms)
    }

    pub(super) fn fence(&self) -> Option<Fence> {
        self.fence.and_then(Fence::new)
    }

    /// Reads the data; `None` if another library wrote it.
    pub(super) fn read(data: &[u8]) -> Option<Self> {
        serde_json::from_slice(data).ok()
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        to_bytes(self)
    }
}

/// Reads the record of a break.
pub(super) fn read_break(data: &[u8]) -> Result<BreakRecord, Error> {
    serde_json::from_slice(data).map_err(|error| {
        let text = "the record of a break has another form";
        Error::new(ErrorKind::Corrupt, text).with_source(error)
    })
}

pub(super) fn to_bytes(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|error| {
        let text = "the client has no text form";
        Error::new(ErrorKind::InvalidInput, text).with_source(error)
    })
}

/// Reads a counter of fences; 0 where nothing is written yet.
pub(super) fn counter(path: &str, data: &[u8]) -> Result<u64, Error> {
    let text = std::str::from_utf8(data).unwrap_or("?");
    match text.trim() {
        "" => Ok(0),
        digits => digits.parse().map_err(|_| {
            let text = format!("the counter of fences {path} is {text:?}, and not a number");
            Error::new(ErrorKind::Corrupt, text)
        }),
    }
}
