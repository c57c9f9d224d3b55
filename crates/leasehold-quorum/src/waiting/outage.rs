use leasehold_types::{BootInstant, Error};

use crate::member::index::Members;

/// Why no majority has a vote, in one error that all waiters of the client share.
#[derive(Debug)]
pub(crate) struct Outage {
    pub(crate) error: Error,
    /// A waiter reports each number once. It changes with the text.
    pub(crate) number: u64,
    /// These may not be asked, or have no vote.
    failed: Members,
    /// How many members have not reported their status.
    pending: usize,
    /// When it was looked at; `None` if something changed at a member since.
    at: Option<BootInstant>,
}

impl Outage {
    /// Something changed at a member.
    pub(crate) fn expire(&mut self) {
        self.at = None;
    }

    /// Returns the outage of these members. Asks for its error, unless the known outage is of this instant.
    pub(crate) fn of(
        known: Option<Self>,
        now: BootInstant,
        (failed, pending): (Members, usize),
        error: impl FnOnce() -> Error,
    ) -> Self {
        let is_known = |it: &Self| (it.at, it.failed, it.pending) == (Some(now), failed, pending);
        match known {
            Some(known) if is_known(&known) => known,
            known => {
                let error = error();
                let number = known.map_or(0, |known| {
                    let is_new = known.error.to_string() != error.to_string();
                    known.number + u64::from(is_new)
                });
                Self {
                    error,
                    number,
                    failed,
                    pending,
                    at: Some(now),
                }
            }
        }
    }
}
