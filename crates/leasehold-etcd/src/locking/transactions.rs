//! The transactions that take a lock: pure.
//!
//! One transaction checks that the lock is free, draws the fence, and writes the entry. If the lock is not free, the
//! same transaction puts a waiter into the queue and reads who is before it.
#![deny(clippy::disallowed_types)]

use leasehold::clock::WallTime;
use leasehold::store::LockRequest;
use leasehold::{Fence, Mode};

use super::entry::{Entry, Stored};
use super::names::{Names, Position, Range};
use super::order::Standing;
use crate::proto::{
    Compare, CompareResult, CompareValue, DeleteRangeRequest, Operation, OperationAnswer,
    PutRequest, RangeRequest, RangeResponse, RequestOp, SortOrder, SortTarget, TxnRequest,
    TxnResponse,
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
}

/// Why the lock is free, as the transaction checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// There is no entry that could exclude the client: the usual case, in which it need not read them first.
    NoOther,
    /// The client read the entries at this revision, and none excludes it. None came or changed since.
    UnchangedSince(i64),
    /// The client only looks. The server answers without a write to its log.
    Unknown,
}

/// What a transaction found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The client has the lock, with this fence. Its entry was written at this revision.
    Granted(Fence, i64),
    /// The lock is free, but the proposed fence is not greater than its last one.
    FencePassed(Fence),
    /// The lock is not free, or has more entries than the condition allows.
    Look(Box<Look>),
}

/// The entries before a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// The revision at which the entries were read.
    pub(crate) revision: i64,
    /// The oldest entry of the lock: its holder, unless others went ahead.
    pub(crate) first: Option<Entry>,
    /// The entries of others, the latest first. It may be only a part.
    pub(crate) entries: Vec<Entry>,
    /// The creation revision before which there are more entries.
    pub(crate) more_before: Option<i64>,
    /// Whether the entry of the client is in the queue.
    pub(crate) is_queued: bool,
}

/// How many entries a waiter reads at once: enough to find the nearest one before it.
const NEAREST: i64 = 16;

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
            Condition::Unknown => Vec::new(),
            _ => vec![Operation::Txn(self.draw(fence)).into()],
        };
        TxnRequest {
            compare: self.compares(condition),
            success,
            failure: self.look(),
        }
    }

    fn compares(&self, condition: Condition) -> Vec<Compare> {
        let (names, lock) = (self.names, &self.request.key);
        let is_shared = self.request.mode == Mode::Shared;
        match (self.standing, condition) {
            // No key has such a revision.
            (_, Condition::Unknown) => vec![Compare::is_at(&self.key(), -1)],
            (Standing::Newcomer | Standing::Barging, Condition::NoOther) if is_shared => {
                vec![is_empty(names.writers(lock)), is_empty(names.ahead(lock))]
            }
            (Standing::Newcomer | Standing::Barging, Condition::NoOther) => {
                vec![is_empty(names.all(lock))]
            }
            (Standing::Newcomer | Standing::Barging, Condition::UnchangedSince(revision)) => {
                vec![is_unchanged(names.all(lock), revision)]
            }
            (Standing::Queued(created), Condition::NoOther) => {
                // An empty range fails the comparison of the queue, but a reader is not in that of the writers.
                let first = if is_shared {
                    is_empty(names.writers(lock))
                } else {
                    comes_after(names.queue(lock), created)
                };
                vec![
                    self.still_queued(created),
                    first,
                    is_empty(names.ahead(lock)),
                ]
            }
            // Those before it in the queue only become fewer, and only share the lock more.
            (Standing::Queued(created), Condition::UnchangedSince(revision)) => {
                let ahead = is_unchanged(names.ahead(lock), revision);
                vec![self.still_queued(created), ahead]
            }
        }
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
        let delete = DeleteRangeRequest { key: key.to_vec() };
        TxnRequest {
            compare: vec![Compare::is_at(key, granted), self.still_queued(created)],
            success: vec![
                Operation::Txn(self.draw(fence)).into(),
                Operation::Delete(delete).into(),
            ],
            failure: Vec::new(),
        }
    }

    fn still_queued(&self, created: i64) -> Compare {
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

    /// Reads who is before the client, and puts the client into the queue if it waits there.
    fn look(&self) -> Vec<RequestOp> {
        let mut operations = Vec::new();
        let mut before = 0;
        match self.standing {
            Standing::Newcomer if self.request.is_queued() => {
                // Never over an entry that an operator broke.
                let enqueue = TxnRequest {
                    compare: vec![Compare::is_at(&self.key(), 0)],
                    success: vec![self.put(None)],
                    failure: Vec::new(),
                };
                operations.push(Operation::Txn(enqueue).into());
            }
            Standing::Newcomer | Standing::Barging => {}
            Standing::Queued(created) => before = created,
        }
        let mut first = self.entries(0, 1);
        first.sort_order = SortOrder::Ascending as i32;
        operations.push(Operation::Range(first).into());
        operations.push(Operation::Range(self.entries(before, self.page())).into());
        if let Standing::Queued(_) = self.standing {
            // Those ahead have later revisions.
            let ahead = range(self.names.ahead(&self.request.key));
            operations.push(Operation::Range(ahead).into());
            operations.push(get(self.key()));
        }
        operations
    }

    /// A client that counts permits needs all entries.
    fn page(&self) -> i64 {
        if self.request.mode.permits().is_some() {
            0
        } else {
            NEAREST
        }
    }

    /// Returns the request for up to `limit` entries that were created up to the revision `up_to`, the latest first; 0
    /// stands for no limit.
    pub(crate) fn entries(&self, up_to: i64, limit: i64) -> RangeRequest {
        RangeRequest {
            limit,
            sort_order: SortOrder::Descending as i32,
            sort_target: SortTarget::CreateRevision as i32,
            max_create_revision: up_to,
            ..range(self.names.all(&self.request.key))
        }
    }

    /// Returns the request for further entries, which were created before this revision.
    pub(crate) fn entries_before(&self, created: i64, limit: i64) -> RangeRequest {
        self.entries(created.saturating_sub(1), limit)
    }

    /// Reads the answer to [`take`](Self::take), which was to draw `fence`.
    pub(crate) fn read(&self, answer: TxnResponse, fence: Fence) -> Option<Step> {
        if answer.succeeded {
            return read_draw(answer, fence);
        }
        let revision = answer.revision();
        let enqueued = match &answer.responses.first()?.answer {
            Some(OperationAnswer::Txn(enqueue)) => enqueue.succeeded,
            _ => false,
        };
        let mut ranges = answer.ranges();
        let (first, before) = (ranges.next()?, ranges.next()?);
        let mut look = Look {
            revision,
            first: self.read_entries(&first).into_iter().next(),
            is_queued: enqueued,
            ..Look::default()
        };
        if let Standing::Queued(_) = self.standing {
            let ahead = ranges.next()?;
            look.entries.extend(self.read_entries(&ahead));
            look.is_queued = !ranges.next()?.kvs.is_empty();
        }
        self.add(&mut look, &before);
        Some(Step::Look(Box::new(look)))
    }

    /// Adds further entries to a look.
    pub(crate) fn add(&self, look: &mut Look, page: &RangeResponse) {
        look.more_before = match page.kvs.last() {
            Some(last) if page.more => Some(last.create_revision),
            _ => None,
        };
        let known: Vec<_> = look.entries.iter().map(|entry| entry.key.clone()).collect();
        let entries = self.read_entries(page).into_iter();
        look.entries
            .extend(entries.filter(|entry| !known.contains(&entry.key)));
    }

    /// Returns the entries of others. An entry that is there before the client has written any was broken.
    fn read_entries(&self, range: &RangeResponse) -> Vec<Entry> {
        let (own, lock) = (self.key(), self.request.key.as_str());
        let has_own = matches!(self.standing, Standing::Queued(_)) || self.request.is_queued();
        let others = range.kvs.iter().filter(|kv| !has_own || kv.key != own);
        others
            .filter_map(|kv| Entry::read(self.names, lock, kv.clone()))
            .collect()
    }
}

/// Reads the answer to [`Attempt::pass_on`]. Returns the grant; `None` if the waiter did not get the lock.
pub(crate) fn read_pass_on(answer: TxnResponse, fence: Fence) -> Option<(Fence, i64)> {
    match answer.succeeded.then(|| read_draw(answer, fence))?? {
        Step::Granted(fence, revision) => Some((fence, revision)),
        Step::FencePassed(_) | Step::Look(_) => None,
    }
}

/// Reads the answer to the transactions that draw a fence.
fn read_draw(answer: TxnResponse, fence: Fence) -> Option<Step> {
    let revision = answer.revision();
    let nested = |answer: TxnResponse| match answer.responses.into_iter().next()?.answer? {
        OperationAnswer::Txn(nested) => Some(nested),
        OperationAnswer::Range(_) => None,
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

/// Returns the fence to propose: greater than the clock, and than the last fence that the client knows.
pub(crate) fn proposal(now: WallTime, last: Option<Fence>) -> Fence {
    let last = last.map_or(0, Fence::get);
    Fence::new(now.as_micros().max(last) + 1).unwrap_or(Fence::MAX)
}

/// Fences are compared as bytes, so they have as many digits as the greatest one.
fn fence_text(fence: Fence) -> Vec<u8> {
    format!("{:020}", fence.get()).into_bytes()
}

/// No key is in the range.
fn is_empty(range: Range) -> Compare {
    Compare::all(range, CompareResult::Equal, CompareValue::CreateRevision(0))
}

/// Each key in the range was created at this revision or later.
fn comes_after(range: Range, created: i64) -> Compare {
    let value = CompareValue::CreateRevision(created.saturating_sub(1));
    Compare::all(range, CompareResult::Greater, value)
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
