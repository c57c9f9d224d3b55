use std::sync::Arc;
use std::time::Duration;

use leasehold::store::{BoxFuture, LockRequest, ReleaseReply};
use leasehold::{Error, Fence, Mode};
use tokio_util::task::TaskTracker;

use super::inner::Inner;
use super::leases::OwnLease;
use super::successors::HandOver;
use crate::client::{EtcdClient, Failure};
use crate::locking::{Attempt, Entry, Standing, State, lease_id, one_key, read_pass_on};
use crate::proto::{LeaseRevokeRequest, LeaseTimeToLiveRequest};

/// Revokes the lease of the owner, which deletes its entry, whether it holds or waits. The server then refuses everything
/// that arrives late with that lease.
///
/// A caller that drops the future does not take the release back: a task does it then.
pub(super) fn release(
    inner: &Arc<Inner>,
    request: &Arc<LockRequest>,
) -> impl Future<Output = Result<ReleaseReply, Error>> + Send + use<> {
    let mut owed = OwedRelease(Some(Release::of(inner, request)));
    async move { owed.pay().await }
}

/// Revokes the lease of an owner without an entry, on the connection of its attempt. A request that follows there finds it gone.
pub(super) fn revoke_in_background(
    inner: &Arc<Inner>,
    client: &Arc<EtcdClient>,
    request: &Arc<LockRequest>,
) {
    drop(Release::of(inner, request).spawn(client, &inner.leftovers));
}

/// The pause before a release is sent again, at first and later.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A release that the thread of the client makes, if the caller drops it.
struct OwedRelease(Option<Release>);

struct Release {
    inner: Arc<Inner>,
    request: Arc<LockRequest>,
    /// The entry, if this client knows it.
    own: Option<OwnLease>,
    /// Whether the entry holds the lock, once that is known.
    is_held: Option<bool>,
    /// Whether a revocation was sent whose answer is not known.
    is_repeated: bool,
}

impl OwedRelease {
    async fn pay(&mut self) -> Result<ReleaseReply, Error> {
        if let Some(release) = &mut self.0 {
            let here = release.inner.here().await;
            // The caller drives this connection, so the usual release wakes no other thread.
            if release.is_held == Some(true) && here.is_open() {
                let context = release.inner.context.clone();
                if context.in_runtime(release.pass_on(&here)).await {
                    // The lease has no entry now, so the caller need not wait for its end.
                    drop(self.0.take().map(Release::spawn_on_thread));
                    return Ok(ReleaseReply::Released);
                }
                if let Ok(reply) = context.in_runtime(release.revoke(&here)).await {
                    self.0 = None;
                    return Ok(reply);
                }
            }
        }
        match self.0.take() {
            Some(release) => release.spawn_on_thread().await,
            // It was made before.
            None => Ok(ReleaseReply::WasLost),
        }
    }
}

impl Drop for OwedRelease {
    fn drop(&mut self) {
        drop(self.0.take().map(Release::spawn_on_thread));
    }
}

impl Release {
    fn of(inner: &Arc<Inner>, request: &Arc<LockRequest>) -> Self {
        let own = inner.own.remove(request.owner);
        Self {
            inner: Arc::clone(inner),
            request: Arc::clone(request),
            is_held: own.as_ref().map(|own| own.is_held),
            own,
            is_repeated: false,
        }
    }

    fn spawn_on_thread(self) -> BoxFuture<'static, Result<ReleaseReply, Error>> {
        let inner = Arc::clone(&self.inner);
        self.spawn(&inner.client, &inner.releases)
    }

    /// Releases in the background, whether or not the caller waits for the answer.
    fn spawn(
        self,
        client: &Arc<EtcdClient>,
        tracker: &TaskTracker,
    ) -> BoxFuture<'static, Result<ReleaseReply, Error>> {
        let calling = Arc::clone(client);
        client.spawn_with_answer(tracker.track_future(async move {
            let context = self.inner.context.clone();
            context.in_runtime(self.in_time(&calling)).await
        }))
    }

    /// Passes the lock to the waiter directly behind the owner, if that is one of this client, and returns whether it got the
    /// lock. One transaction deletes one entry and writes the other. If its answer is lost, the waiter asks the server.
    async fn pass_on(&self, client: &EtcdClient) -> bool {
        let granted = self.own.as_ref().and_then(|own| Some((own, own.granted?)));
        let Some((own, granted)) = granted.filter(|_| self.request.mode == Mode::Exclusive) else {
            return false;
        };
        let Some(next) = self.inner.successors.take(lease_id(self.request.owner)) else {
            return false;
        };
        let attempt = Attempt {
            names: &self.inner.names,
            request: &next.request,
            lease: lease_id(next.request.owner),
            number: next.number,
            fence_lease: next.fence_lease,
            standing: Standing::Queued(next.created),
            announces: false,
        };
        let wall = self.inner.context.env().clock.wall();
        let Ok(fence) = Fence::after(None, wall.max(next.request.proposal)) else {
            return false;
        };
        let question = attempt.pass_on((&own.key, granted), next.created, fence);
        let limit = self.request.limit();
        let answer = self.inner.transact(client, question, limit).await;
        let passed = answer.ok().and_then(|answer| read_pass_on(answer, fence));
        let Some((fence, revision)) = passed else {
            return false;
        };
        // A waiter that has ended is released by its own client.
        let _ = next.granted.send(HandOver { fence, revision });
        true
    }

    /// Sends the release until the server answers, or until the lease is over.
    async fn in_time(mut self, client: &EtcdClient) -> Result<ReleaseReply, Error> {
        let inner = Arc::clone(&self.inner);
        let (env, end) = (inner.context.env(), inner.now() + self.request.ttl);
        let mut pause = PAUSE_MIN;
        loop {
            // The semaphore is never closed.
            let permit = inner.releasing.acquire().await;
            let answer = self.revoke(client).await;
            drop(permit);
            let error = match answer {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure.into_error(),
            };
            if inner.now() > end || !error.is_retryable() {
                return Err(error.with_unknown_effect());
            }
            let span = env.random_span(pause / 2, pause);
            env.clock.sleep_until(inner.now() + span).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Sends the release once.
    async fn revoke(&mut self, client: &EtcdClient) -> Result<ReleaseReply, Failure> {
        if self.is_held.is_none() {
            self.is_held = Some(self.inner.holds(&self.request).await?);
        }
        let holds = self.is_held == Some(true);
        let was_repeated = std::mem::replace(&mut self.is_repeated, true);
        let id = lease_id(self.request.owner);
        let answer = client
            .call(LeaseRevokeRequest { id }, self.request.limit())
            .await;
        if let (Ok(_), Some(own)) = (&answer, &self.own) {
            self.inner.used.put(&self.inner.names, &own.key);
        }
        match answer {
            Ok(_) if holds => Ok(ReleaseReply::Released),
            // The first of two revocations may have ended the lease.
            Err(Failure::NoLease) if holds && was_repeated => Ok(ReleaseReply::Released),
            Err(Failure::NoLease) => {
                self.inner.open_broken(&self.request).await;
                Ok(ReleaseReply::WasLost)
            }
            Ok(_) => Ok(ReleaseReply::WasLost),
            Err(failure) => Err(failure),
        }
    }
}

impl Inner {
    /// Removes the entry that keeps a broken lock closed: its owner says that it has ended. If that fails, the lock opens
    /// when the lease would have ended.
    async fn open_broken(&self, request: &LockRequest) {
        let Ok(entries) = self.entries_of(&request.key).await else {
            return;
        };
        let is_own = |entry: &&Entry| entry.owner() == Some(request.owner);
        let mut broken = entries.iter().filter(is_own);
        if let Some(entry) = broken.find(|entry| entry.state() == Some(State::Broken)) {
            // The lease belongs to this entry alone.
            let question = LeaseRevokeRequest { id: entry.lease };
            let _ = self.client.call(question, request.limit()).await;
        }
    }

    /// Returns whether an owner that this client does not know holds the lock: another process took it.
    async fn holds(&self, request: &LockRequest) -> Result<bool, Failure> {
        let entry = self.find_entry(request).await?;
        Ok(entry.is_some_and(|entry| entry.is_held()))
    }

    /// Returns the entry of an owner that this client does not know.
    pub(super) async fn find_entry(&self, request: &LockRequest) -> Result<Option<Entry>, Failure> {
        let (id, limit) = (lease_id(request.owner), request.limit());
        let question = LeaseTimeToLiveRequest { id, keys: true };
        let found = self.client.call(question, limit).await?;
        let lock = request.key.as_str();
        let is_entry = |key: &Vec<u8>| self.names.parse(key).is_some_and(|(name, ..)| name == lock);
        let Some(key) = found.keys.into_iter().find(is_entry) else {
            return Ok(None);
        };
        let found = self.client.call(one_key(key), limit).await?;
        let mut entries = found.kvs.into_iter();
        let entry = entries.find_map(|kv| Entry::read(&self.names, lock, kv));
        Ok(entry.filter(|entry| entry.owner() == Some(request.owner)))
    }
}
