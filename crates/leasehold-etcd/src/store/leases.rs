use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold::store::{LockRequest, Owner, Term};
use leasehold::{Error, Key};

use super::session::Inner;
use crate::client::{EtcdClient, Failure};
use crate::locking::{Names, Position, SharedLease, lease_id};
use crate::proto::{LeaseGrantRequest, TxnRequest, TxnResponse};

/// The leases of the client that may have an entry, by owner.
#[derive(Debug, Default)]
pub(super) struct OwnLeases(Mutex<HashMap<Owner, OwnLease>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnLease {
    /// The key of the entry.
    pub(super) key: Vec<u8>,
    /// Whether the entry holds the lock, and does not wait.
    pub(super) is_held: bool,
    /// When the entry was written last, if the owner got the lock from its place in the queue, or as a newcomer, in this process.
    pub(super) granted: Option<i64>,
}

impl OwnLeases {
    pub(super) fn insert(&self, owner: Owner, lease: OwnLease) {
        self.lock().insert(owner, lease);
    }

    pub(super) fn get(&self, owner: Owner) -> Option<OwnLease> {
        self.lock().get(&owner).cloned()
    }

    pub(super) fn remove(&self, owner: Owner) -> Option<OwnLease> {
        self.lock().remove(&owner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Owner, OwnLease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The numbers of keys that the client used, and that do not exist now, by lock and part of its directory. A server keeps the
/// names of deleted keys, and reads them at each attempt. So a client uses its keys again.
#[derive(Debug, Default)]
pub(super) struct UsedKeys(Mutex<HashMap<(String, Position), Vec<i64>>>);

/// For how many locks a client remembers its keys.
const LOCKS_MAX: usize = 1024;

impl UsedKeys {
    /// Returns the number of a key for an entry; that of the lease if there is no key to use again.
    pub(super) fn take(&self, lock: &Key, position: Position, lease: i64) -> i64 {
        let mut used = self.lock();
        let numbers = used.get_mut(&(lock.to_string(), position));
        numbers.and_then(Vec::pop).unwrap_or(lease)
    }

    /// Remembers the key of an entry whose lease was revoked.
    pub(super) fn put(&self, names: &Names, key: &[u8]) {
        let Some((lock, position, number)) = names.parse(key) else {
            return;
        };
        let mut used = self.lock();
        if used.len() >= LOCKS_MAX {
            used.clear();
        }
        let numbers = used.entry((lock.to_owned(), position)).or_default();
        numbers.push(number);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, Position), Vec<i64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For which hour the client knows that a shared lease exists.
#[derive(Debug, Default)]
pub(super) struct SharedLeases(Mutex<HashMap<SharedLease, u64>>);

impl Inner {
    /// Asks for the lease of a request. No key is sent before the answer: once the lease was granted, a revocation
    /// stops everything that arrives late. A lease is asked for only once, since a copy of the question that arrives
    /// after the revocation would undo it.
    pub(super) async fn grant_lease(
        &self,
        client: &EtcdClient,
        request: &LockRequest,
    ) -> Result<Term, Error> {
        let since = self.now();
        let question = LeaseGrantRequest {
            ttl: seconds(request.ttl),
            id: lease_id(request.owner),
        };
        let granted = client.call(question, request.limit()).await?;
        let ttl = Duration::from_secs(u64::try_from(granted.ttl).unwrap_or_default());
        Ok(Term::new(since, ttl))
    }

    /// Returns the id of a lease that many keys share. Asks for it at its first use by this client.
    pub(super) async fn shared_lease(
        &self,
        client: &EtcdClient,
        lease: SharedLease,
        limit: Duration,
    ) -> Result<i64, Error> {
        let span = SharedLease::span(self.context.env().clock.wall());
        let id = lease.id(&self.names, span);
        if self.known_shared().get(&lease) == Some(&span) {
            return Ok(id);
        }
        let ttl = seconds(lease.ttl());
        match client.call(LeaseGrantRequest { ttl, id }, limit).await {
            Ok(_) | Err(Failure::LeaseExists) => {
                self.known_shared().insert(lease, span);
                Ok(id)
            }
            // Nothing of the lock was sent yet.
            Err(failure) => Err(failure.into_error().without_effect()),
        }
    }

    /// Asks for the shared leases again at their next use. One of them may have been revoked.
    fn forget_shared_leases(&self) {
        self.known_shared().clear();
    }

    /// Carries out a transaction that may write keys with a shared lease.
    pub(super) async fn transact(
        &self,
        client: &EtcdClient,
        question: TxnRequest,
        limit: Duration,
    ) -> Result<TxnResponse, Error> {
        let answer = client.call(question, limit).await;
        if matches!(answer, Err(Failure::NoLease)) {
            self.forget_shared_leases();
        }
        Ok(answer?)
    }

    fn known_shared(&self) -> MutexGuard<'_, HashMap<SharedLease, u64>> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a TTL in whole seconds, rounded up.
pub(super) fn seconds(ttl: Duration) -> i64 {
    let whole = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
    i64::try_from(whole.max(1)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ttl_is_rounded_up_to_whole_seconds() {
        for (millis, expected) in [(1, 1), (1000, 1), (1001, 2), (60_000, 60)] {
            assert_eq!(seconds(Duration::from_millis(millis)), expected);
        }
    }
}
