//! Values that the unit tests share.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{ClientId, ClientInfo, Entropy, Key, LockRequest, Owner, WallTime};

/// Random numbers, from the seeds of the standard library's hash maps.
#[derive(Debug)]
pub(crate) struct RandomEntropy;

impl Entropy for RandomEntropy {
    fn next_u64(&self) -> u64 {
        RandomState::new().hash_one(0)
    }
}

/// Returns a request of a new client on the lock `x`.
pub(crate) fn lock_request(ttl: Duration) -> LockRequest {
    let since = WallTime::from_micros(1);
    let id = ClientId::random(&RandomEntropy);
    let info = ClientInfo::new(id, "host".into(), 1, "test".into(), since);
    let owner = Owner::random(id, &RandomEntropy);
    LockRequest::new(Key::new("x").unwrap(), owner, ttl, since, Arc::new(info))
}
