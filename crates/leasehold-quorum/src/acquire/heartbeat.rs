//! Tells members each second that this client is alive, and repairs the effects of lost notifications.

use std::sync::Arc;

use leasehold_types::LockRequest;

use super::Acquiring;
use crate::member::Task;
use crate::member::index::MemberIndex;
use crate::membership::Access;
use crate::messages::Request;
use crate::net::Net;
use crate::operation::OperationId;
use crate::operation::operations::Operations;
use crate::waiting::waiters::HEARTBEAT_EVERY;

/// How many locks one heartbeat asks about.
const LOCKS_AT_ONCE: usize = 64;

/// Sends a heartbeat to a member: it asks about the oldest waiter of each lock there.
pub(crate) fn send(net: &mut Net, acquisitions: &Operations<Acquiring>, member: MemberIndex) {
    let now = net.now.instant;
    if net.membership.access(now, member, now) != Access::Open {
        return;
    }
    let queued = |id: OperationId| {
        let acquisition = acquisitions.get(id)?.as_ordinary()?;
        let is_queued = acquisition.is_queued_at(member);
        is_queued.then(|| (id, Arc::clone(&acquisition.lock_request)))
    };
    let locks = net.waiters.by_lock();
    let oldest = locks.filter_map(|mut waiters| waiters.find_map(queued));
    let mut waits: Vec<(OperationId, Arc<LockRequest>)> = oldest.collect();
    waits.sort_unstable_by_key(|(id, _)| *id);
    net.members[member].heartbeat = Some(now);
    let mut parts: Vec<&[(OperationId, Arc<LockRequest>)]> = waits.chunks(LOCKS_AT_ONCE).collect();
    if parts.is_empty() {
        parts.push(&[]);
    }
    for part in parts {
        let (ids, lock_requests) = part.iter().cloned().unzip();
        let (task, request) = (Task::Heartbeat(ids), Request::Heartbeat(lock_requests));
        net.send(member, task, request, HEARTBEAT_EVERY);
    }
}
