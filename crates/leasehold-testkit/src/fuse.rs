use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Kills a client at one of its requests: that one, and all that it sends afterwards, are never
/// answered. Shared by all members that the client asks.
#[derive(Clone, Debug)]
pub struct Fuse {
    sent: Arc<AtomicU64>,
    /// Which request is the last one, the first being 1.
    last: u64,
    is_carried_out: bool,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is carried out and answered.
    Answered,
    /// It is carried out, and its sender died before the answer came.
    CarriedOut,
    /// Its sender died before it was sent.
    Unsent,
}

impl Fuse {
    /// The client dies with its `last` request, which is carried out or not.
    pub fn at(last: u64, is_carried_out: bool) -> Self {
        Self {
            sent: Arc::default(),
            last,
            is_carried_out,
        }
    }

    /// Whether the client is dead.
    pub fn has_blown(&self) -> bool {
        self.sent.load(Ordering::SeqCst) >= self.last
    }

    pub(crate) fn next(&self) -> Fate {
        let number = self.sent.fetch_add(1, Ordering::SeqCst) + 1;
        match number.cmp(&self.last) {
            std::cmp::Ordering::Less => Fate::Answered,
            std::cmp::Ordering::Equal if self.is_carried_out => Fate::CarriedOut,
            _ => Fate::Unsent,
        }
    }
}
