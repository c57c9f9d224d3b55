//! The transactions that take a lock: pure.
//!
//! One transaction checks that the lock is free, draws the fence, and writes the entry. If the lock is not free, the
//! same transaction puts a waiter into the queue.
#![deny(clippy::disallowed_types)]

use leasehold::store::LockRequest;
use leasehold::{Fence, Mode};

use super::entry::Stored;
use super::names::{Names, Position, Range};
use super::order::Standing;
use crate::proto::{
    Compare, CompareResult, CompareValue, DeleteRangeRequest, Operation, OperationAnswer,
    PutRequest, RangeRequest, RequestOp, TxnRequest, TxnResponse,
};

/// One attempt to take a lock, with the key that its owner writes.
#[derive(Clone, Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) names: &'a Names,
    pub(crate) request: &'a LockRequest,
    pub(crate) lease: i64,
    /// The number of the key.
    pub(crate) number: i64,
    /// The lease of the fence.
    pub(crate) fence_lease: i64,
    pub(crate) standing: Standing,
    /// Whether the client writes an entry if the lock is not free, so that all that come later see it.
    pub(crate) announces: bool,
}

/// Why the lock is free, as the transaction checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// There is no entry that could exclude the client: the usual case, in which it need not read them first.
    NoOther,
    /// The client read the entries at this revision, and none excludes it. No key in their range was written since. Keys
    /// of other locks can lie in the range, so it may never hold.
    UnchangedSince(i64),
    /// The same, but no client was granted the lock since. It holds for a client with an entry, since clients of other libraries
    /// that come later wait for that entry. No other lock writes the key that it compares.
    NoGrantSince(i64),
    /// The owner that was granted the lock at this revision, alone and from its place in the queue, was directly before
    /// this one, and is gone. No other was granted the lock since.
    LastGrantAt(i64),
    /// Never: the client only writes its entry.
    Never,
}

/// What a transaction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The client has the lock, with this fence. Its entry was written at this revision.
    Granted(Fence, i64),
    /// The lock is free, but the proposed fence is not greater than its last one.
    FencePassed(Fence),
    /// The condition does not hold. The entry of the client was created at this revision.
    Entered(i64),
    /// The condition does not hold at this revision.
    NotFree(i64),
    /// The condition does not hold, and the key of the client exists already: an operator broke its entry.
    KeyInUse,
}

impl Attempt<'_> {
    /// Returns the key of the owner.
    pub(crate) fn key(&self) -> Vec<u8> {
        self.names
            .entry(&self.request.key, self.position(), self.number)
    }

    pub(crate) fn position(&self) -> Position {
        match (self.standing, self.request.mode) {
            (Standing::Barging, _) => Position::Ahead,
            (_, Mode::Shared) => Position::Reader,
            _ => Position::Queue,
        }
    }

    /// Returns the transaction that takes the lock with `fence` under `condition`.
    pub(crate) fn take(&self, condition: Condition, fence: Fence) -> TxnRequest {
        let success = match condition {
            Condition::Never => Vec::new(),
            _ => vec![Operation::Txn(self.draw(fence)).into()],
        };
        let enters = self.standing.created().is_none() && self.announces;
        TxnRequest {
            compare: self.compares(condition),
            success,
            failure: enters.then(|| self.enter()).into_iter().collect(),
        }
    }

    fn compares(&self, condition: Condition) -> Vec<Compare> {
        let (names, lock) = (self.names, &self.request.key);
        let still_there = self.standing.created().map(|it| self.still_there(it));
        let condition = match condition {
            // Readers do not exclude each other.
            Condition::NoOther if self.request.mode == Mode::Shared => {
                return vec![is_empty(names.writers(lock)), is_empty(names.ahead(lock))];
            }
            Condition::NoOther => is_empty(names.all(lock)),
            // Those before it in the queue only become fewer, and only share the lock more. Those behind it count it, so they
            // leave it a permit.
            Condition::UnchangedSince(revision) if still_there.is_some() => {
                is_unchanged(names.ahead(lock), revision)
            }
            Condition::UnchangedSince(revision) => is_unchanged(names.all(lock), revision),
            Condition::NoGrantSince(revision) => {
                is_unchanged((names.fence(lock), Vec::new()), revision)
            }
            Condition::LastGrantAt(revision) => Compare::is_at(&names.fence(lock), revision),
            // No key has such a revision.
            Condition::Never => Compare::is_at(&self.key(), -1),
        };
        still_there.into_iter().chain([condition]).collect()
    }

    /// Returns the transaction that passes the lock from the holder before it to this waiter, which was put into the queue at
    /// the revision `created`. `key` was last written at the revision `granted`, when its holder got the lock exclusively. So no
    /// other client holds the lock, and none is before this waiter.
    pub(crate) fn pass_on(
        &self,
        (key, granted): (&[u8], i64),
        created: i64,
        fence: Fence,
    ) -> TxnRequest {
        let delete = DeleteRangeRequest::one(key);
        TxnRequest {
            compare: vec![Compare::is_at(key, granted), self.still_there(created)],
            success: vec![
                Operation::Txn(self.draw(fence)).into(),
                Operation::Delete(delete).into(),
            ],
            failure: Vec::new(),
        }
    }

    fn still_there(&self, created: i64) -> Compare {
        let value = CompareValue::CreateRevision(created);
        Compare::one(self.key(), CompareResult::Equal, value)
    }

    /// Draws the fence if it is greater than the last one, and writes it with the entry. A lock without a last fence
    /// has no key to compare.
    fn draw(&self, fence: Fence) -> TxnRequest {
        let key = self.names.fence(&self.request.key);
        let absent = CompareValue::CreateRevision(0);
        let is_first = Compare::one(key.clone(), CompareResult::Equal, absent);
        let proposed = CompareValue::Value(fence_text(fence));
        let is_greater = Compare::one(key.clone(), CompareResult::Less, proposed);
        let puts = vec![
            self.put(Some(fence)),
            put(key.clone(), fence_text(fence), self.fence_lease),
        ];
        let compared = TxnRequest {
            compare: vec![is_greater],
            success: puts.clone(),
            failure: vec![get(key)],
        };
        TxnRequest {
            compare: vec![is_first],
            success: puts,
            failure: vec![Operation::Txn(compared).into()],
        }
    }

    fn put(&self, fence: Option<Fence>) -> RequestOp {
        let request = self.request;
        let client = (*request.client).clone();
        let stored = Stored::new(request.owner, request.mode, fence, client);
        put(self.key(), stored.to_bytes(), self.lease)
    }

    /// Writes the entry of a client that has none. Never over an entry that an operator broke.
    fn enter(&self) -> RequestOp {
        let enter = TxnRequest {
            compare: vec![Compare::is_at(&self.key(), 0)],
            success: vec![self.put(None)],
            failure: Vec::new(),
        };
        Operation::Txn(enter).into()
    }

    /// Reads the answer to [`take`](Self::take), which was to draw `fence`.
    pub(crate) fn read(&self, answer: TxnResponse, fence: Fence) -> Option<Step> {
        if answer.succeeded {
            return read_draw(answer, fence);
        }
        let revision = answer.revision();
        let mut answers = answer.responses.into_iter().map(|op| op.answer);
        match answers.next() {
            Some(Some(OperationAnswer::Txn(enter))) if enter.succeeded => {
                Some(Step::Entered(revision))
            }
            Some(Some(OperationAnswer::Txn(_))) => Some(Step::KeyInUse),
            Some(_) => None,
            None => Some(Step::NotFree(revision)),
        }
    }
}

/// Reads the answer to [`Attempt::pass_on`]. Returns the grant; `None` if the waiter did not get the lock.
pub(crate) fn read_pass_on(answer: TxnResponse, fence: Fence) -> Option<(Fence, i64)> {
    match answer.succeeded.then(|| read_draw(answer, fence))?? {
        Step::Granted(fence, revision) => Some((fence, revision)),
        _ => None,
    }
}

/// Reads the answer to the transactions that draw a fence.
fn read_draw(answer: TxnResponse, fence: Fence) -> Option<Step> {
    let revision = answer.revision();
    let nested = |answer: TxnResponse| match answer.responses.into_iter().next()?.answer? {
        OperationAnswer::Txn(nested) => Some(nested),
        _ => None,
    };
    let first = nested(answer)?;
    if first.succeeded {
        return Some(Step::Granted(fence, revision));
    }
    let compared = nested(first)?;
    if compared.succeeded {
        return Some(Step::Granted(fence, revision));
    }
    let last = compared.ranges().next()?.kvs.into_iter().next()?;
    let last = std::str::from_utf8(&last.value).ok()?.parse().ok()?;
    Some(Step::FencePassed(last))
}

/// Fences are compared as bytes, so they have as many digits as the greatest one.
fn fence_text(fence: Fence) -> Vec<u8> {
    format!("{:020}", fence.get()).into_bytes()
}

/// No key is in the range.
fn is_empty(range: Range) -> Compare {
    Compare::all(range, CompareResult::Equal, CompareValue::CreateRevision(0))
}

/// No key in the range was written after the revision. Keys may have been deleted.
fn is_unchanged(range: Range, revision: i64) -> Compare {
    let value = CompareValue::ModRevision(revision.saturating_add(1));
    Compare::all(range, CompareResult::Less, value)
}

/// Returns the request for all keys in a range.
pub(crate) fn range((key, range_end): Range) -> RangeRequest {
    RangeRequest {
        key,
        range_end,
        ..RangeRequest::default()
    }
}

/// Returns the request for one key.
pub(crate) fn one_key(key: Vec<u8>) -> RangeRequest {
    range((key, Vec::new()))
}

fn get(key: Vec<u8>) -> RequestOp {
    Operation::Range(one_key(key)).into()
}

fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> RequestOp {
    Operation::Put(PutRequest { key, value, lease }).into()
}

#[cfg(test)]
#[path = "transactions_tests.rs"]
mod tests;
