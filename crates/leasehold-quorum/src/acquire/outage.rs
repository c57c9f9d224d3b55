use leasehold_types::{BootInstant, Error};

use crate::errors::too_few;
use crate::member::index::Members;
use crate::net::Net;

/// Why no majority has a vote, in one error that all waiters of the client share.
#[derive(Debug)]
pub(crate) struct Outage {
    pub(crate) error: Error,
    /// A waiter reports each number once.
    pub(crate) number: u64,
    failed: Members,
    pending: usize,
    /// When it was looked at; `None` if something changed at a member since.
    at: Option<BootInstant>,
}

impl Outage {
    /// Something changed at a member.
    pub(crate) fn expire(&mut self) {
        self.at = None;
    }
}

impl Net {
    /// Returns why no majority has a vote: `failed` may not be asked or have no vote, and the status of `pending` members is
    /// not known yet. The number changes with the text.
    pub(crate) fn outage(&mut self, failed: Members, pending: usize) -> &Outage {
        let now = self.now.instant;
        let is_known =
            |it: &Outage| it.at == Some(now) && it.failed == failed && it.pending == pending;
        let outage = match self.outage.take() {
            Some(known) if is_known(&known) => known,
            known => {
                let error = self.too_few(failed, pending);
                let number = known.map_or(0, |known| {
                    let is_new = known.error.to_string() != error.to_string();
                    known.number + u64::from(is_new)
                });
                Outage {
                    error,
                    number,
                    failed,
                    pending,
                    at: Some(now),
                }
            }
        };
        self.outage.insert(outage)
    }

    fn too_few(&mut self, failed: Members, pending: usize) -> Error {
        let (now, membership) = (self.now.instant, &mut self.membership);
        let failures = failed
            .iter()
            .filter_map(|member| match membership.is_open(member) {
                true => membership.lacks_vote(now, member),
                false => membership.obstacle(now, member),
            });
        let failures = failures.collect();
        too_few(self.members.len(), pending, failures).without_effect()
    }
}
