use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::Shared;
use leasehold::store::{BoxFuture, locked};
use leasehold::{Error, ErrorKind, Key};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::locking::Snapshot;

/// The waiters of this client, by lock. Those of one lock share what they read of its queue, and only some of them enter it
/// at the same time. So a crowd asks the servers not much more than one waiter.
#[derive(Debug, Default)]
pub(super) struct Crowds(Mutex<HashMap<Key, Arc<Crowd>>>);

/// The waiters of this client for one lock.
#[derive(Debug)]
pub(super) struct Crowd {
    size: Mutex<usize>,
    entrance: Semaphore,
    /// The request for the entries of the lock that is under way.
    reading: Mutex<Option<Reading>>,
}

type Reading = Shared<BoxFuture<'static, Result<Arc<Snapshot>, Error>>>;

/// A waiter of a crowd. It leaves the crowd when dropped.
#[derive(Debug)]
pub(super) struct Member<'a> {
    crowds: &'a Crowds,
    key: &'a Key,
    crowd: Arc<Crowd>,
}

/// How many waiters of a crowd enter the queue at the same time.
const ENTERING_MAX: usize = 64;

/// How often a waiter reads the entries again, if what it was given is older than what it knows.
const READINGS_MAX: usize = 4;

impl Crowds {
    /// Makes a waiter a member of the crowd of its lock.
    pub(super) fn join<'a>(&'a self, key: &'a Key) -> Member<'a> {
        let mut crowds = locked(&self.0);
        let crowd = crowds.entry(key.clone()).or_insert_with(|| {
            Arc::new(Crowd {
                size: Mutex::new(0),
                entrance: Semaphore::new(ENTERING_MAX),
                reading: Mutex::default(),
            })
        });
        *locked(&crowd.size) += 1;
        Member {
            crowds: self,
            key,
            crowd: Arc::clone(crowd),
        }
    }
}

impl Member<'_> {
    /// Returns whether it is the only one.
    pub(super) fn is_alone(&self) -> bool {
        *locked(&self.crowd.size) == 1
    }

    /// Waits until it may enter the queue.
    pub(super) async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.crowd.entrance.acquire().await.ok()
    }

    /// Returns the entries of the lock as they were at this revision or later.
    pub(super) async fn read(
        &self,
        begin: impl Fn() -> BoxFuture<'static, Result<Arc<Snapshot>, Error>>,
        at_least: i64,
    ) -> Result<Arc<Snapshot>, Error> {
        for _ in 0..READINGS_MAX {
            let reading = self.reading(&begin);
            let snapshot = reading.clone().await;
            self.forget_ended();
            let snapshot = snapshot?;
            if snapshot.revision >= at_least {
                return Ok(snapshot);
            }
        }
        let text = "the server answers with an older state than before";
        Err(Error::new(ErrorKind::InvalidResponse, text))
    }

    /// Returns the request that is under way, or begins a new one.
    fn reading(
        &self,
        begin: impl Fn() -> BoxFuture<'static, Result<Arc<Snapshot>, Error>>,
    ) -> Reading {
        let mut last = locked(&self.crowd.reading);
        let under_way = last.clone().filter(|reading| reading.peek().is_none());
        under_way.unwrap_or_else(|| {
            let reading = begin().shared();
            *last = Some(reading.clone());
            reading
        })
    }

    /// Frees what was read, once the waiters that asked for it have it.
    fn forget_ended(&self) {
        let mut last = locked(&self.crowd.reading);
        if last.as_ref().is_some_and(|it| it.peek().is_some()) {
            *last = None;
        }
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        let mut crowds = locked(&self.crowds.0);
        let mut size = locked(&self.crowd.size);
        *size -= 1;
        if *size == 0 {
            crowds.remove(self.key);
        }
    }
}
