//! A lock table within one process, for tests. `table` and `record_table` contain the rules and are pure. The store
//! locks the table, lets it decide, and wakes waiters.

mod breaks;
mod entries;
mod inspection;
mod record_table;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex};

use crate::env::clock::{self, BootInstant};
use crate::env::{BoxFuture, locked};
use crate::store::{
    AcquireError, Admin, Exclusion, Expiry, Grant, Guarantees, Held, Inspection, LeaseTerms,
    LockRequest, Opened, Order, Progress, Reading, RecordKey, RecordState, RecordWrite, Records,
    ReleaseReply, RenewReply, Session, SessionContext, Store, WriteOutcome, poll_until,
};
use crate::types::{BreakRecord, BrokenLease, Error, Fence, Key, Pattern};
use record_table::RecordTable;
use table::Table;

/// A store within one process, for tests and examples.
///
/// Clones grant the same locks. Leases expire by the clock of the [client](crate::ClientBuilder::env). The store
/// serves waiters in the order in which they began to wait.
///
/// # Examples
///
/// ```
/// use leasehold::{Client, memory::MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore {
    data: Arc<Mutex<Data>>,
}

/// The locks as one client sees them, by its clock.
#[derive(Debug)]
struct MemorySession {
    store: MemoryStore,
    context: SessionContext,
}

#[derive(Debug, Default)]
struct Data {
    table: Table,
    records: RecordTable,
}

impl MemoryStore {
    /// Returns an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything, including fences. A later fence is greater only if the clock has moved on since, which a virtual clock
    /// does not do by itself.
    pub fn forget_everything(&self) {
        *locked(&self.data) = Data::default();
    }

    /// Forgets one key with its fence, its queue and its record.
    pub fn forget(&self, key: &Key) {
        let mut data = locked(&self.data);
        data.table.forget(key);
        data.records.forget(key);
    }
}

impl MemorySession {
    fn now(&self) -> BootInstant {
        self.context.env().clock.now()
    }

    /// Runs a step of the table at the current time.
    fn step<'a, T: Send + 'a>(
        &'a self,
        step: impl FnOnce(&mut Table, BootInstant) -> T + Send + 'a,
    ) -> BoxFuture<'a, T> {
        Box::pin(async move { step(&mut locked(&self.store.data).table, self.now()) })
    }

    /// Resolves when it may be the request's turn.
    async fn wait(&self, request: &LockRequest) {
        let env = self.context.env();
        let clock = &*env.clock;
        let outlook = locked(&self.store.data).table.outlook(request, clock.now());
        match outlook {
            // The lock may become free without a notification.
            Some((notify, Some(until))) => {
                clock::within(clock, until, notify.notified()).await;
            }
            Some((notify, None)) => notify.notified().await,
            None => env.poll_pause().await,
        }
    }

    fn record<'a, T: Send + 'a>(
        &'a self,
        record: &'a RecordKey,
        step: impl FnOnce(&mut RecordState<BootInstant>, BootInstant) -> T + Send + 'a,
    ) -> BoxFuture<'a, Result<T, Error>> {
        Box::pin(async move {
            let now = self.now();
            let records = &mut locked(&self.store.data).records;
            Ok(records.with(&record.key, now, |slot| step(slot, now)))
        })
    }
}

impl fmt::Display for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory")
    }
}

impl Store for MemoryStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees::new(Exclusion::Process, Expiry::Lease, Order::Fifo)
            .with_shared()
            .with_permits()
    }

    fn terms(&self) -> LeaseTerms {
        LeaseTerms::single()
    }

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        Arc::new(MemorySession {
            store: self.clone(),
            context,
        })
    }
}

impl Session for MemorySession {
    fn acquire<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        let attempt =
            |request: Arc<LockRequest>| self.step(move |table, now| table.acquire(&request, now));
        let pause = || self.context.in_runtime(self.wait(request));
        Box::pin(poll_until(
            self.context.env(),
            request,
            progress,
            attempt,
            pause,
        ))
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<RenewReply>> {
        self.step(|table, now| leases.iter().map(|held| table.renew(held, now)).collect())
    }

    fn unconfirmed_releases(&self) -> Option<usize> {
        Some(0)
    }

    fn release<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
    ) -> BoxFuture<'a, Result<ReleaseReply, Error>> {
        self.step(|table, now| Ok(table.release(request, now)))
    }

    fn inspection(&self) -> Option<&dyn Inspection> {
        Some(self)
    }

    fn admin(&self) -> Option<&dyn Admin> {
        Some(self)
    }

    fn records(&self) -> Option<&dyn Records> {
        Some(self)
    }
}

impl Admin for MemorySession {
    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<BrokenLease, Error>> {
        self.step(|table, now| Ok(table.break_lease(key, record, now)))
    }

    fn last_break<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<BreakRecord>, Error>> {
        self.step(|table, now| Ok(table.last_break(key, now)))
    }
}

impl Records for MemorySession {
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Opened, Error>> {
        self.record(record, move |slot, now| slot.open(fence, now))
    }

    fn write_record<'a>(
        &'a self,
        record: &'a RecordKey,
        write: &'a RecordWrite,
    ) -> BoxFuture<'a, Result<WriteOutcome, Error>> {
        self.record(record, |slot, now| slot.write(write, now))
    }

    fn read_record<'a>(&'a self, record: &'a RecordKey) -> BoxFuture<'a, Result<Reading, Error>> {
        self.record(record, |slot, now| slot.read(now))
    }

    fn list_records<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        Box::pin(async move {
            let (data, now) = (locked(&self.store.data), self.now());
            let keys = data.records.keys(now);
            let matching = keys.filter(|key| pattern.matches(key.as_str()));
            Ok(matching.take(limit).cloned().collect())
        })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl From<MemoryStore> for Arc<dyn Store> {
    fn from(store: MemoryStore) -> Self {
        Arc::new(store)
    }
}
