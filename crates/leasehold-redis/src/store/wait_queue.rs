use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use leasehold::clock::{BootInstant, Clock, within};
use leasehold::store::{Attempt, Grant, Owner};
use leasehold::{Effect, Error};
use leasehold_quorum::{Outcome, Progress};
use tokio::sync::Mutex as AsyncMutex;

use super::errors::unexpected;
use crate::driver::Call;

/// The waits of one client, by owner. A wait begins when the members did not grant the first attempt.
#[derive(Debug, Default)]
pub(super) struct WaitQueue {
    open: Mutex<HashMap<Owner, Arc<Wait>>>,
    /// How many are open. A free lock needs no wait, and then no thread touches the mutex.
    count: AtomicUsize,
}

/// A wait in the queue. It continues between the attempts of its caller.
#[derive(Debug)]
pub(super) struct Wait(AsyncMutex<State>);

#[derive(Debug)]
struct State {
    call: Call,
    /// An event that no attempt has taken yet.
    next: Option<Result<Outcome, Progress>>,
    /// The answer to the last attempt.
    last: Progress,
}

impl WaitQueue {
    /// Begins a wait, whose first attempt was answered with `first`.
    pub(super) fn begin(&self, owner: Owner, call: Call, first: Progress) {
        let state = State {
            call,
            next: None,
            last: first,
        };
        let wait = Arc::new(Wait(AsyncMutex::new(state)));
        let mut open = self.open();
        open.insert(owner, wait);
        self.count.store(open.len(), Ordering::Release);
    }

    /// Returns the wait of `owner`, if one began.
    pub(super) fn get(&self, owner: Owner) -> Option<Arc<Wait>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.open().get(&owner).cloned()
    }

    /// Ends the wait. The engine gives back a grant that no attempt took.
    pub(super) fn end(&self, owner: Owner) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut open = self.open();
        let ended = open.remove(&owner);
        self.count.store(open.len(), Ordering::Release);
        // The call is dropped outside of the mutex.
        drop(open);
        drop(ended);
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Owner, Arc<Wait>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wait {
    /// Returns an event that came since the last attempt, or the last answer. If too few members answered,
    /// the next event may take until `end`. The caller then tries again instead of waiting for the event.
    pub(super) async fn attempt(
        &self,
        clock: &dyn Clock,
        end: BootInstant,
    ) -> Result<Outcome, Progress> {
        let mut state = self.0.lock().await;
        let event = match (state.next.take(), state.last.clone()) {
            (Some(event), _) => event,
            (None, last @ Progress::Busy(_)) => Err(last),
            (None, last @ Progress::Unavailable(_)) => {
                let next = within(clock, end, state.call.event()).await;
                next.unwrap_or(Err(last))
            }
        };
        if let Err(progress) = &event {
            state.last = progress.clone();
        }
        event
    }

    /// Resolves at the next event.
    pub(super) async fn changed(&self) {
        let mut state = self.0.lock().await;
        if state.next.is_none() {
            state.next = Some(state.call.event().await);
        }
    }
}

/// Converts an outcome to the result of an attempt.
pub(super) fn attempt(outcome: Outcome) -> Result<Attempt, Error> {
    match outcome {
        Outcome::Acquired(acquired) => Ok(Attempt::Granted(
            Grant::new(acquired.fence, acquired.term).owned_by(acquired.owner),
        )),
        Outcome::Busy(busy) => Ok(Attempt::Busy(busy)),
        Outcome::Failed(error) => Err(error),
        Outcome::Renewed(_) | Outcome::Released(_) | Outcome::Record(_) | Outcome::Health(_) => {
            Err(unexpected())
        }
    }
}

/// Returns the answer to an attempt whose wait continues.
pub(super) fn told(progress: Progress) -> Result<Attempt, Error> {
    match progress {
        Progress::Busy(busy) => Ok(Attempt::Busy(busy)),
        // The engine continues, and gives back what it gets too late.
        Progress::Unavailable(error) => {
            debug_assert_ne!(error.effect(), Effect::Unknown);
            Err(error.without_effect())
        }
    }
}
