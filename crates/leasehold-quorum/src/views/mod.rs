//! What the members of a quorum report together, merged by what a majority agrees on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use leasehold_types::{
    BreakRecord, BrokenLease, Error, ErrorKind, Holder, Key, ListedLock, LockListing,
    MemberFailure, MemberId, MemberRecord, MemberSet, Visibility, Waiter,
};

use crate::ballot::majority;
use crate::errors::too_few;
use crate::trust::UntrustedReason;

/// The answers of all members to one question, and the failures of the others.
#[derive(Debug)]
pub struct Answers<T> {
    given: Vec<T>,
    failures: Vec<MemberFailure>,
}

impl<T> Answers<T> {
    /// Collects what each member answered.
    pub fn new(answers: impl IntoIterator<Item = (MemberId, Result<T, Error>)>) -> Self {
        let (mut given, mut failures) = (Vec::new(), Vec::new());
        for (member, answer) in answers {
            match answer {
                Ok(answer) => given.push(answer),
                Err(error) => failures.push(MemberFailure::new(member, error)),
            }
        }
        Self { given, failures }
    }

    fn members(&self) -> usize {
        self.given.len() + self.failures.len()
    }

    /// Returns the answers if a majority answered, the failures, and the size of a majority.
    fn of_a_majority(self) -> Result<(Vec<T>, Vec<MemberFailure>, usize), Error> {
        let members = self.members();
        let needed = majority(members);
        if self.given.len() < needed {
            return Err(too_few(members, 0, self.failures));
        }
        Ok((self.given, self.failures, needed))
    }
}

/// Checks that a member belongs to the quorum of these members. A member without a record belongs to no other.
///
/// # Errors
///
/// [`ErrorKind::Misconfigured`] with both lists, if its record names other members.
pub fn check_members(record: Option<&MemberRecord>, ours: &MemberSet) -> Result<(), Error> {
    match record {
        Some(record) if record.set.ids != ours.ids => Err(UntrustedReason::OtherSet {
            theirs: record.set.clone(),
            generation: record.configuration(),
            ours: ours.clone(),
        }
        .error()),
        _ => Ok(()),
    }
}

/// Returns the holders that a majority names. Holders that use another library have no identity and count
/// as one.
///
/// # Errors
///
/// If no majority answered.
pub fn holders(answers: Answers<Vec<Holder>>) -> Result<Vec<Holder>, Error> {
    let (given, _, needed) = answers.of_a_majority()?;
    Ok(by_holder(given.into_iter().flatten())
        .filter(|views| views.len() >= needed)
        .filter_map(|views| merged_holder(views, needed))
        .collect())
}

/// Returns the waiters that a majority names, in the order of their tickets.
///
/// # Errors
///
/// If no majority answered.
pub fn waiters(answers: Answers<Vec<Waiter>>) -> Result<Vec<Waiter>, Error> {
    let (given, _, needed) = answers.of_a_majority()?;
    let mut named = BTreeMap::<_, Vec<Waiter>>::new();
    for waiter in given.into_iter().flatten() {
        named.entry(waiter.ticket.waiter).or_default().push(waiter);
    }
    let agreed = named.into_values().filter(|views| views.len() >= needed);
    let mut waiters: Vec<Waiter> = agreed.filter_map(merged_waiter).collect();
    waiters.sort_by_key(|waiter| waiter.ticket);
    Ok(waiters)
}

/// Returns the first `limit` locks that any member lists, with the number of members for each holder. Each
/// member lists its first locks up to the limit, so a lock among the first of all is among the first of
/// each member that has it. Less than a majority may have answered; the failures show it.
///
/// # Errors
///
/// If no member answered, or if too few did for a reason that does not pass.
pub fn list_locks(answers: Answers<LockListing>, limit: usize) -> Result<LockListing, Error> {
    let members = answers.members();
    let needed = majority(members);
    let Answers { given, failures } = answers;
    if given.len() < needed {
        let error = too_few(members, 0, failures.clone());
        if given.is_empty() || error.kind() != ErrorKind::NoQuorum {
            return Err(error);
        }
    }
    let mut more = given.iter().any(|listing| listing.more);
    let mut named = BTreeMap::<Key, Vec<Holder>>::new();
    for lock in given.into_iter().flat_map(|listing| listing.locks) {
        let holders = lock.holders.into_iter().map(|sight| sight.holder);
        named.entry(lock.key).or_default().extend(holders);
    }
    more |= named.len() > limit;
    let locks = named.into_iter().take(limit);
    let locks = locks.map(|(key, views)| listed(key, views, needed));
    let mut listing = LockListing::new(locks.collect(), more);
    listing.members = members;
    listing.failures = failures;
    Ok(listing)
}

/// Returns the first `limit` keys that any member names: a record that a majority has is among them, and among the first of each
/// member that has it.
///
/// # Errors
///
/// If no majority answered.
pub fn record_keys(answers: Answers<Vec<Key>>, limit: usize) -> Result<Vec<Key>, Error> {
    let (given, _, _) = answers.of_a_majority()?;
    let named: BTreeSet<Key> = given.into_iter().flatten().collect();
    Ok(named.into_iter().take(limit).collect())
}

/// Returns the result of breaking a lease. A majority that remembers the break cannot hold the lease again,
/// whether or not the lease existed.
///
/// # Errors
///
/// If no majority broke the lease.
pub fn broken(answers: Answers<BrokenLease>) -> Result<BrokenLease, Error> {
    let members = answers.members();
    let Answers { given, failures } = answers;
    if given.len() >= majority(members) {
        let existed = given.iter().any(|broken| broken.existed);
        let closed_for = given.iter().filter_map(|broken| broken.closed_for).max();
        let mut broken = BrokenLease::new(existed, closed_for);
        broken.members = given.len();
        return Ok(broken);
    }
    if let (1, [only]) = (members, failures.as_slice()) {
        return Err(only.error.clone());
    }
    let text = format!(
        "the lock is broken on only {} of {members} members, which is no majority: its holder may \
         go on renewing its lease on the others",
        given.len(),
    );
    let error = Error::new(ErrorKind::NoQuorum, text).with_members(failures);
    Err(error.with_unknown_effect())
}

/// Returns the latest break that any member remembers.
///
/// # Errors
///
/// If no majority answered.
pub fn last_break(answers: Answers<Option<BreakRecord>>) -> Result<Option<BreakRecord>, Error> {
    let (given, _, _) = answers.of_a_majority()?;
    Ok(given.into_iter().flatten().max_by_key(|record| record.at))
}

fn listed(key: Key, views: Vec<Holder>, needed: usize) -> ListedLock {
    let mut counts = Vec::new();
    let holders = by_holder(views).filter_map(|views| {
        counts.push(views.len());
        merged_holder(views, needed)
    });
    let holders = holders.collect();
    let mut lock = ListedLock::new(key, holders);
    let sights = lock.holders.iter_mut().zip(counts);
    sights.for_each(|(sight, members)| sight.members = members);
    lock.holders
        .sort_by_key(|sight: &Visibility| Reverse(sight.members));
    lock
}

/// Groups the members' views by holder.
fn by_holder(views: impl IntoIterator<Item = Holder>) -> impl Iterator<Item = Vec<Holder>> {
    let mut named = BTreeMap::<_, Vec<Holder>>::new();
    for view in views {
        named.entry((view.owner, view.mode)).or_default().push(view);
    }
    named.into_values()
}

/// Merges the members' views of one holder. The lease ends when its shortest part on the best majority
/// ends. It is broken if the members on which it is not broken are no majority.
fn merged_holder(mut views: Vec<Holder>, needed: usize) -> Option<Holder> {
    // A lease without an end is the longest.
    views.sort_by_key(|view| Reverse(view.remaining.map_or(u128::MAX, |left| left.as_nanos())));
    let unbroken = views.iter().filter(|view| !view.broken).count();
    let mut holder = views.get(needed - 1).or(views.first())?.clone();
    holder.client = views.iter().find_map(|view| view.client.clone());
    holder.fence = views.iter().filter_map(|view| view.fence).max();
    holder.broken = unbroken < views.len() && unbroken < needed;
    Some(holder)
}

/// Prefers a member that knows the waiter's process.
fn merged_waiter(mut views: Vec<Waiter>) -> Option<Waiter> {
    let known = views.iter().position(|view| view.client.is_some());
    (!views.is_empty()).then(|| views.swap_remove(known.unwrap_or(0)))
}

#[cfg(test)]
mod tests;
