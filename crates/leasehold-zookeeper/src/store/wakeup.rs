use std::time::Duration;

use futures_util::future::select_all;
use leasehold::clock::{Clock, within};

use crate::client::Change;

/// What a waiter waits for: the first of some changes.
pub(super) struct Wakeup {
    changes: Vec<Change>,
    /// For how long at most: a lock that a broken lease keeps closed opens without a change.
    at_most: Option<Duration>,
}

impl Wakeup {
    /// A request that does not wait has no change.
    pub(super) fn new(change: Option<Change>, at_most: Option<Duration>) -> Self {
        let changes = change.into_iter().collect();
        Self { changes, at_most }
    }

    /// The same, or this change.
    pub(super) fn or(mut self, change: Option<Change>) -> Self {
        self.changes.extend(change);
        self
    }

    /// Waits for a notification, or for the end of the connection, which may have lost one.
    pub(super) async fn wait(self, clock: &dyn Clock) {
        if self.changes.is_empty() {
            return;
        }
        let changed = select_all(self.changes);
        match self.at_most {
            None => drop(changed.await),
            Some(span) => drop(within(clock, clock.now() + span, changed).await),
        }
    }
}
