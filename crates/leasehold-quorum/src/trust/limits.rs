//! The limits of a quorum. An operator sets them when the quorum is initialized, and the records of its members
//! state them from then on.

use std::time::Duration;

use leasehold_types::{
    BootInstant, Error, ErrorKind, LockRequest, MemberRecord, MemberSet, Term, exact_span,
};

use super::Trust;
use crate::ballot::majority;

impl Trust {
    /// Takes over the limits that the members state.
    pub(super) fn adopt_limits(&mut self, now: BootInstant) {
        let records = || {
            let known = self.known.iter().flatten();
            known.filter_map(|known| known.status.member_record.as_ref())
        };
        let set = stated_set(&self.set, records());
        let alike = records().filter(|record| record.set == set).count();
        self.is_agreed = alike >= majority(self.ids.len());
        if set != self.set {
            self.data_generations.set_max_ttl(set.max_ttl);
            self.clocks
                .set_limits(set.clock_tolerance, set.max_ttl, now);
            self.set = set;
        }
    }

    /// Checks the TTL of a request against the limits of the quorum, once a majority states them.
    pub(crate) fn check_ttl(&self, lock_request: &LockRequest) -> Result<(), Error> {
        if self.enforced && !self.is_agreed {
            return Ok(());
        }
        let least = self.clock_allowance() * 5;
        let most = match self.enforced || self.ids.len() > 1 {
            true => self.set.max_ttl,
            false => Duration::MAX,
        };
        if lock_request.usable_ttl() >= least && lock_request.ttl <= most {
            return Ok(());
        }
        let what = match lock_request.delay.is_zero() {
            true => format!("TTL {} is", exact_span(lock_request.ttl)),
            false => format!(
                "TTL {} and lock delay {} are",
                exact_span(lock_request.usable_ttl()),
                exact_span(lock_request.delay)
            ),
        };
        let text = format!(
            "{what} out of bounds; this quorum allows {} to {}, by the limits that it was initialized with",
            exact_span(least),
            exact_span(most)
        );
        let error = Error::new(ErrorKind::InvalidInput, text).with_ttl_bounds(least, most);
        Err(error.with_key(&lock_request.key))
    }

    /// Returns the term of a lease that counts from `since`.
    pub(crate) fn term(&self, lock_request: &LockRequest, since: BootInstant) -> Term {
        Term::new(
            since,
            lock_request.ttl.saturating_sub(self.clock_allowance()),
        )
    }

    /// By how much the end of a lease at one member may differ from that at another.
    fn clock_allowance(&self) -> Duration {
        match self.ids.len() {
            1 => Duration::ZERO,
            _ => self.set.clock_tolerance * 2,
        }
    }
}

/// Returns `set` with the limits that most of these records state, among those of the same members. On a tie, the
/// first record decides. Without such a record, returns `set` as it is.
pub fn stated_set<'a>(
    set: &MemberSet,
    records: impl IntoIterator<Item = &'a MemberRecord>,
) -> MemberSet {
    let stated = records.into_iter().map(|record| &record.set);
    let stated: Vec<&MemberSet> = stated.filter(|theirs| theirs.ids == set.ids).collect();
    let count = |limits: &MemberSet| stated.iter().filter(|it| **it == limits).count();
    // The last of several maxima is returned.
    let most = stated.iter().rev().max_by_key(|it| count(it));
    most.map_or_else(|| set.clone(), |it| MemberSet::clone(it))
}
