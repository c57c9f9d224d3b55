use super::MemorySession;
use crate::env::BoxFuture;
use crate::store::Inspection;
use crate::types::{Error, Holder, Key, ListedLock, LockListing, Pattern, Waiter};

impl Inspection for MemorySession {
    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        self.step(|table, now| Ok(table.holders(key, now)))
    }

    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        self.step(|table, now| Ok(table.waiters(key, now)))
    }

    fn list_locks<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<LockListing, Error>> {
        self.step(move |table, now| {
            let held = table
                .held(now)
                .filter(|(key, _)| pattern.matches(key.as_str()));
            let locks = held.map(|(key, holders)| ListedLock::new(key.clone(), holders));
            let mut locks: Vec<_> = locks.take(limit.saturating_add(1)).collect();
            let more = locks.len() > limit;
            locks.truncate(limit);
            Ok(LockListing::new(locks, more))
        })
    }
}
