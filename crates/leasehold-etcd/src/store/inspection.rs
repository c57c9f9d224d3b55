use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use leasehold::clock::WallTime;
use leasehold::look::{Holder, ListedLock, LockListing, Pattern, Waiter};
use leasehold::store::{BoxFuture, Inspection, LockRequest, Ticket};
use leasehold::{Error, Key};

use super::inner::EtcdInner;
use super::session::EtcdSession;
use crate::locking::{Entry, EntryState, Range, one_key, range};
use crate::proto::{KeyValue, LeaseTimeToLiveRequest, RangeRequest, SortOrder, SortTarget};

/// How many keys are read at once.
const PAGE: i64 = 1_000;

/// How many leases are asked about at once.
const LEASES_AT_ONCE: usize = 64;

/// The form of an entry that another library wrote.
const FOREIGN: &str = "a lock of etcdctl or Go's concurrency package";

/// How long a request of an operator may take.
pub(super) const LIMIT: Duration = LockRequest::LIMIT_MAX;

impl Inspection for EtcdSession {
    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        Box::pin(async move {
            let entries = self.0.entries_of(key).await?;
            self.0.shown(holders(entries)).await
        })
    }

    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        Box::pin(async move { Ok(waiters(self.0.entries_of(key).await?)) })
    }

    fn list_locks<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<LockListing, Error>> {
        Box::pin(self.0.list(pattern, limit))
    }
}

impl EtcdInner {
    /// Returns the entries of a lock, the oldest first.
    pub(super) async fn entries_of(&self, lock: &Key) -> Result<Vec<Entry>, Error> {
        let question = RangeRequest {
            sort_order: SortOrder::Ascending as i32,
            sort_target: SortTarget::CreateRevision as i32,
            ..range(self.names.all(lock))
        };
        let found = self.client.call(question, LIMIT).await?;
        let read = |kv| Entry::read(&self.names, lock.as_str(), kv);
        Ok(found.kvs.into_iter().filter_map(read).collect())
    }

    async fn list(&self, pattern: &Pattern, limit: usize) -> Result<LockListing, Error> {
        let mut locks = BTreeMap::<String, Vec<Entry>>::new();
        let mut rest = Some(self.names.starting_with(pattern.prefix()));
        while let Some(range) = rest {
            let (page, next) = self.page(range, false).await?;
            page.into_iter()
                .filter_map(|kv| Entry::of_any_lock(&self.names, kv))
                .filter(|(lock, _)| pattern.matches(lock))
                .for_each(|(lock, entry)| locks.entry(lock).or_default().push(entry));
            rest = next;
        }
        let held = locks.into_iter().filter_map(|(lock, mut entries)| {
            entries.sort_by_key(|entry| entry.created);
            let holders = holders(entries);
            // A name that no lock can have belongs to another program.
            let lock = Key::new(lock).ok()?;
            (!holders.is_empty()).then_some((lock, holders))
        });
        let mut held: Vec<_> = held.collect();
        let more = held.len() > limit;
        held.truncate(limit);
        let shown = held.into_iter().map(async |(lock, holders)| {
            let holders = self.shown(holders).await?;
            Ok::<_, Error>(ListedLock::new(lock, holders))
        });
        let shown = stream::iter(shown).buffered(LEASES_AT_ONCE);
        Ok(LockListing::new(shown.try_collect().await?, more))
    }

    /// Returns the first keys of a range, and the range of the others.
    pub(super) async fn page(
        &self,
        (first, end): Range,
        keys_only: bool,
    ) -> Result<(Vec<KeyValue>, Option<Range>), Error> {
        let question = RangeRequest {
            limit: PAGE,
            keys_only,
            ..range((first, end.clone()))
        };
        let page = self.client.call(question, LIMIT).await?;
        let last = page.kvs.last().filter(|_| page.more);
        // The next key after the last one.
        let rest = last.map(|last| ([&*last.key, &[0]].concat(), end));
        Ok((page.kvs, rest))
    }

    /// Returns what people see of holders. Asks how long their leases live.
    async fn shown(&self, holders: Vec<Entry>) -> Result<Vec<Holder>, Error> {
        let asking = holders.into_iter().map(async |entry| {
            let remaining = self.remaining(entry.lease).await?;
            let mut holder = match &entry.stored {
                Some(stored) => {
                    let mut holder = Holder::of(stored.owner, entry.mode);
                    holder.client = Some(stored.client.clone());
                    holder.fence = stored.fence;
                    holder.broken = stored.state == EntryState::Broken;
                    holder
                }
                None => {
                    let mut holder = Holder::unknown(entry.mode);
                    holder.form = Some(FOREIGN);
                    holder
                }
            };
            holder.remaining = remaining;
            Ok::<_, Error>(holder)
        });
        stream::iter(asking)
            .buffered(LEASES_AT_ONCE)
            .try_collect()
            .await
    }

    /// Returns how long a lease lives unless it is renewed; `None` for no lease. The server counts whole seconds.
    pub(super) async fn remaining(&self, lease: i64) -> Result<Option<Duration>, Error> {
        if lease == 0 {
            return Ok(None);
        }
        let question = LeaseTimeToLiveRequest { id: lease };
        let answer = self.client.call(question, LIMIT).await?;
        let seconds = u64::try_from(answer.ttl).unwrap_or_default();
        Ok(Some(Duration::from_secs(seconds)))
    }

    /// Returns the value of one key.
    pub(super) async fn value(&self, key: Vec<u8>) -> Result<Option<KeyValue>, Error> {
        let found = self.client.call(one_key(key), LIMIT).await?;
        Ok(found.kvs.into_iter().next())
    }
}

/// Returns the entries that hold the lock. Another library marks no holder: its client holds the lock when it is first.
fn holders(entries: Vec<Entry>) -> Vec<Entry> {
    let numbered = entries.into_iter().enumerate();
    let held = numbered
        .filter(|(number, entry)| entry.is_held() || (*number == 0 && entry.stored.is_none()));
    held.map(|(_, entry)| entry).collect()
}

/// Returns the waiters of this library, in the order of the queue. A ticket has the time by the clock of its waiter,
/// and never an earlier one than the ticket before. The time of a wrong clock does not count.
fn waiters(entries: Vec<Entry>) -> Vec<Waiter> {
    let mut latest = WallTime::from_micros(0);
    let waiting = entries
        .into_iter()
        .filter(|entry| entry.state() == Some(EntryState::Waiting));
    let shown = waiting.filter_map(|entry| {
        let stored = entry.stored?;
        latest = stored
            .owner
            .plausible_since()
            .map_or(latest, |since| latest.max(since));
        let ticket = Ticket {
            since: latest,
            waiter: stored.owner,
        };
        let mut waiter = Waiter::unknown(ticket, entry.mode);
        waiter.client = Some(stored.client);
        Some(waiter)
    });
    shown.collect()
}
