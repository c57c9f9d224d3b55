//! The optional traits of the inner store, with its faults.

use leasehold::look::{BreakRecord, BrokenLease, Holder, LockListing, Pattern, Waiter};
use leasehold::store::{Admin, BoxFuture, Inspection};
use leasehold::{Error, ErrorKind, Key};

use super::{FaultySession, StoreCall};

impl Inspection for FaultySession {
    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        let key = key.clone();
        self.ask(move |inner| Box::pin(async move { of(inner.inspection())?.holders(&key).await }))
    }

    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        let key = key.clone();
        self.store.note(StoreCall::Waiters(key.clone()));
        self.ask(move |inner| Box::pin(async move { of(inner.inspection())?.waiters(&key).await }))
    }

    fn list_locks<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<LockListing, Error>> {
        let pattern = pattern.clone();
        self.ask(move |inner| {
            Box::pin(async move { of(inner.inspection())?.list_locks(&pattern, limit).await })
        })
    }
}

impl Admin for FaultySession {
    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<BrokenLease, Error>> {
        let (key, record) = (key.clone(), record.clone());
        self.ask(move |inner| {
            Box::pin(async move { of(inner.admin())?.break_lease(&key, &record).await })
        })
    }

    fn last_break<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<BreakRecord>, Error>> {
        let key = key.clone();
        self.ask(move |inner| Box::pin(async move { of(inner.admin())?.last_break(&key).await }))
    }
}

/// Returns an optional trait that the inner store must have, since the faulty one returned it.
pub(super) fn of<T>(part: Option<T>) -> Result<T, Error> {
    part.ok_or_else(|| Error::new(ErrorKind::Unsupported, "the store lacks an optional trait"))
}
