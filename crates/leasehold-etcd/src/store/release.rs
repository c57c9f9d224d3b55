use std::sync::Arc;

use leasehold::store::{LockRequest, ReleaseReply};
use leasehold::{Error, Fence, Mode};

use super::inner::EtcdInner;
use super::leases::OwnLease;
use super::successors::HandOver;
use crate::client::{EtcdClient, Failure};
use crate::locking::{Attempt, Entry, EntryState, Standing, lease_id, one_key, read_pass_on};
use crate::proto::{LeaseRevokeRequest, LeaseTimeToLiveRequest};

/// Revokes the lease of the owner, which deletes its entry, whether it holds or waits. The server then refuses everything
/// that arrives late with that lease.
pub(super) async fn release(
    inner: &Arc<EtcdInner>,
    request: &Arc<LockRequest>,
) -> Result<ReleaseReply, Error> {
    let own = inner.own.get(request.owner);
    if let Some(own) = own.as_ref().filter(|own| own.is_held) {
        // The caller drives this connection, so the usual release wakes no other thread.
        let here = inner.here().await;
        if here.is_open() {
            let context = &inner.context;
            if context
                .in_runtime(pass_on(inner, &here, request, own))
                .await
            {
                // The lease has no entry now, so the caller need not wait for its end.
                revoke_in_background(inner, &inner.client, request);
                return Ok(ReleaseReply::Released);
            }
            return context
                .in_runtime(revoke(inner, &here, request, Some(own), true))
                .await;
        }
    }
    let releasing = async {
        let is_held = match &own {
            Some(own) => own.is_held,
            None => inner.holds(request).await?,
        };
        revoke(inner, &inner.client, request, own.as_ref(), is_held).await
    };
    inner.context.in_runtime(releasing).await
}

/// Revokes the lease of an owner without an entry, on the connection of its attempt. A request that follows there finds it gone.
/// Without an answer, the lease ends by itself.
pub(super) fn revoke_in_background(
    inner: &Arc<EtcdInner>,
    client: &Arc<EtcdClient>,
    request: &Arc<LockRequest>,
) {
    let own = inner.own.remove(request.owner);
    let revoking = {
        let (inner, client, request) = (Arc::clone(inner), Arc::clone(client), Arc::clone(request));
        async move {
            let context = inner.context.clone();
            let revoking = revoke(&inner, &client, &request, own.as_ref(), false);
            context.in_runtime(revoking).await
        }
    };
    drop(client.spawn_with_answer(inner.leftovers.track_future(revoking)));
}

async fn revoke(
    inner: &EtcdInner,
    client: &EtcdClient,
    request: &LockRequest,
    own: Option<&OwnLease>,
    is_held: bool,
) -> Result<ReleaseReply, Error> {
    let id = lease_id(request.owner);
    let answer = client
        .call(LeaseRevokeRequest { id }, request.limit())
        .await;
    let reply = match answer {
        Ok(_) => {
            if let Some(own) = own {
                inner.used.put(&inner.names, &own.key);
            }
            match is_held {
                true => ReleaseReply::Released,
                false => ReleaseReply::WasLost,
            }
        }
        Err(Failure::NoLease) => {
            inner.open_broken(request).await;
            ReleaseReply::WasLost
        }
        Err(failure) => return Err(failure.into_error()),
    };
    inner.own.remove(request.owner);
    Ok(reply)
}

/// Passes the lock to the waiter directly behind the owner, if that is one of this client, and returns whether it got the
/// lock. One transaction deletes one entry and writes the other. If its answer is lost, the waiter asks the server.
async fn pass_on(
    inner: &EtcdInner,
    client: &EtcdClient,
    request: &LockRequest,
    own: &OwnLease,
) -> bool {
    let Some(granted) = own.granted.filter(|_| request.mode == Mode::Exclusive) else {
        return false;
    };
    let Some(next) = inner.successors.take(lease_id(request.owner)) else {
        return false;
    };
    let attempt = Attempt {
        names: &inner.names,
        request: &next.request,
        lease: lease_id(next.request.owner),
        number: next.number,
        fence_lease: next.fence_lease,
        standing: Standing::Queued(next.created),
        announces: false,
    };
    let wall = inner.context.env().clock.wall();
    let Ok(fence) = Fence::after(None, wall.max(next.request.proposal)) else {
        return false;
    };
    let question = attempt.pass_on((&own.key, granted), next.created, fence);
    let answer = inner.transact(client, question, request.limit()).await;
    let passed = answer.ok().and_then(|answer| read_pass_on(answer, fence));
    let Some((fence, revision)) = passed else {
        return false;
    };
    // A waiter that has ended is released by its own client.
    let _ = next.granted.send(HandOver { fence, revision });
    true
}

impl EtcdInner {
    /// Removes the entry that keeps a broken lock closed: its owner says that it has ended. If that fails, the lock opens
    /// when the lease would have ended.
    async fn open_broken(&self, request: &LockRequest) {
        let Ok(entries) = self.entries_of(&request.key).await else {
            return;
        };
        let is_own = |entry: &&Entry| entry.owner() == Some(request.owner);
        let mut broken = entries.iter().filter(is_own);
        if let Some(entry) = broken.find(|entry| entry.state() == Some(EntryState::Broken)) {
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
