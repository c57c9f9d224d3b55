//! The leases of a client whose renewals fail, and how they are logged.

use std::collections::HashSet;

use crate::store::{RenewReply, Store};
use crate::telemetry::LogEvent;
use crate::types::Error;

/// The leases in doubt. Hundreds of leases fail together if their store fails. They share one log line
/// when the first of them fails, and one when all are renewed again.
#[derive(Debug, Default)]
pub(crate) struct FailedRenewals {
    leases: HashSet<u64>,
    /// The number of leases that were in doubt since the first line.
    affected: usize,
    is_told: bool,
    /// A failure among the answers that are not logged yet.
    failure: Option<Error>,
    /// Whether one of these answers confirmed a lease.
    is_renewed: bool,
}

impl FailedRenewals {
    /// Records the answer to the renewal of this lease.
    pub(crate) fn hear(&mut self, lease: u64, answer: &RenewReply) {
        match answer {
            RenewReply::Renewed(_) => {
                self.is_renewed = true;
                self.remove(lease);
            }
            RenewReply::Unknown(error) => {
                self.failure.get_or_insert_with(|| error.clone());
                self.affected += usize::from(self.leases.insert(lease));
            }
            RenewReply::Lost(_) => {}
        }
    }

    /// Removes a lease that is lost or was released.
    pub(crate) fn remove(&mut self, lease: u64) {
        self.leases.remove(&lease);
    }

    /// Logs the first failure, or the end of all of them, after the answers to one request.
    pub(crate) fn log(&mut self, store: &dyn Store) {
        let (failure, is_renewed) = (self.failure.take(), std::mem::take(&mut self.is_renewed));
        if self.leases.is_empty() {
            if self.is_told && is_renewed {
                let (store, locks) = (store.to_string(), self.affected);
                let event = LogEvent::RenewalsSucceed.as_str();
                tracing::info!(event, store, locks, "renewals succeed again");
            }
            (self.is_told, self.affected) = (false, 0);
        } else if let Some(error) = failure
            && !self.is_told
        {
            self.is_told = true;
            let (store, locks) = (store.to_string(), self.leases.len());
            let event = LogEvent::RenewalsFail.as_str();
            tracing::warn!(
                event, store, locks, %error,
                "renewals fail: each lock is lost at its deadline unless one succeeds"
            );
        }
    }
}
