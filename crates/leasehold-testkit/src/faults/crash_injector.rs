use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Kills a client at one of its requests. This request and all later ones get no answer. All members that
/// the client asks share the injector.
#[derive(Clone, Debug)]
pub struct CrashInjector {
    sent: Arc<AtomicU64>,
    /// The number of the last request, counted from 1.
    last: u64,
    is_carried_out: bool,
}

/// The effect on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    /// The store carries it out and answers.
    Answered,
    /// The store carries it out, and its sender dies before the answer arrives.
    CarriedOut,
    /// Its sender dies before sending it.
    Unsent,
}

impl CrashInjector {
    /// Kills the client with its `last` request. `is_carried_out` says whether the store carries that
    /// request out.
    pub fn at(last: u64, is_carried_out: bool) -> Self {
        Self {
            sent: Arc::default(),
            last,
            is_carried_out,
        }
    }

    /// Whether the client is dead.
    pub fn has_crashed(&self) -> bool {
        self.sent.load(Ordering::SeqCst) >= self.last
    }

    pub(crate) fn next(&self) -> RequestOutcome {
        let number = self.sent.fetch_add(1, Ordering::SeqCst) + 1;
        match number.cmp(&self.last) {
            std::cmp::Ordering::Less => RequestOutcome::Answered,
            std::cmp::Ordering::Equal if self.is_carried_out => RequestOutcome::CarriedOut,
            _ => RequestOutcome::Unsent,
        }
    }
}
