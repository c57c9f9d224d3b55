use std::sync::Arc;

use leasehold::store::{LockRequest, ReleaseReply};
use leasehold::{Error, ErrorKind};
use tokio::sync::oneshot;

use super::session::Inner;
use crate::client::Failure;
use crate::locking::{Entry, lease_id, one_key};
use crate::proto::{LeaseRevokeRequest, LeaseTimeToLiveRequest};

/// Revokes the lease of the owner, which deletes its entry, whether it holds or waits. The server then refuses everything
/// that arrives late with that lease.
///
/// A task does it, because a caller that drops the future does not take the release back.
pub(super) fn release(
    inner: &Arc<Inner>,
    request: &Arc<LockRequest>,
) -> impl Future<Output = Result<ReleaseReply, Error>> + Send + use<> {
    let (answer, answered) = oneshot::channel();
    let (releasing, request) = (Arc::clone(inner), Arc::clone(request));
    let task = async move {
        // The caller may be gone.
        let _ = answer.send(releasing.release_in_time(&request).await);
    };
    inner.context.spawn(inner.releases.track_future(task));
    async move { answered.await.unwrap_or_else(|_| Err(closed())) }
}

/// Revokes the lease of an owner without an entry.
pub(super) fn revoke_in_background(inner: &Arc<Inner>, request: &Arc<LockRequest>) {
    drop(release(inner, request));
}

impl Inner {
    /// Sends the release until the server answers, or until the lease is over.
    async fn release_in_time(&self, request: &LockRequest) -> Result<ReleaseReply, Error> {
        let own = self.own.remove(request.owner);
        let end = self.now() + request.ttl;
        let mut is_held = own.as_ref().map(|own| own.is_held);
        let mut is_repeated = false;
        loop {
            let answer = async {
                if is_held.is_none() {
                    is_held = Some(self.holds(request).await?);
                }
                let id = lease_id(request.owner);
                self.client
                    .call(LeaseRevokeRequest { id }, request.limit())
                    .await
            };
            let answer = answer.await;
            let holds = is_held == Some(true);
            if let (Ok(_), Some(own)) = (&answer, &own) {
                self.used.put(&self.names, &own.key);
            }
            match answer {
                Ok(_) if holds => return Ok(ReleaseReply::Released),
                // The first of two revocations may have ended the lease.
                Err(Failure::NoLease) if holds && is_repeated => return Ok(ReleaseReply::Released),
                Ok(_) | Err(Failure::NoLease) => return Ok(ReleaseReply::WasLost),
                Err(failure) => {
                    let error = failure.into_error();
                    if self.now() > end || !error.is_retryable() {
                        return Err(error.with_unknown_effect());
                    }
                    is_repeated = true;
                    self.context.env().poll_pause().await;
                }
            }
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

fn closed() -> Error {
    let text = "the client ended before the answer came";
    Error::new(ErrorKind::Closed, text).with_unknown_effect()
}
