//! Tells members each second that this client is alive, and repairs the effects of lost notifications.

use std::sync::Arc;

use leasehold_types::Claim;

use super::waiters::HEARTBEAT_EVERY;
use crate::acquire::state::{ClaimState, Phase};
use crate::engine::{Engine, Now};
use crate::member::Task;
use crate::membership::Access;
use crate::operation::OperationId;
use crate::reply::Reply;
use crate::request::Request;

/// How many locks one heartbeat asks about.
const LOCKS_AT_ONCE: usize = 64;

impl Engine {
    /// Sends the heartbeats of this second, while this client has waiters.
    pub(crate) fn send_heartbeats(&mut self, now: Now) {
        self.heartbeat.stop();
        if self.waiters.is_empty() {
            return;
        }
        self.heartbeat.keep_up(now.instant);
        self.resume_all(now);
        for member in 0..self.members.len() {
            self.send_heartbeat(now, member);
        }
    }

    /// Sends the presence of this client ahead of its first waiter.
    pub(crate) fn send_presence(&mut self, now: Now, member: usize) {
        let last = self.members[member].heartbeat;
        let is_connected = self.members[member].connected.is_some();
        if is_connected && last.is_none_or(|last| now.instant.since(last) >= HEARTBEAT_EVERY) {
            self.members[member].heartbeat = Some(now.instant);
            let request = Request::Heartbeat(Vec::new());
            self.send(
                now,
                member,
                Task::Heartbeat(Vec::new()),
                request,
                HEARTBEAT_EVERY,
            );
        }
    }

    pub(crate) fn send_heartbeat(&mut self, now: Now, member: usize) {
        let access = self.membership.access(now.instant, member, now.instant);
        if access != Access::Open {
            return;
        }
        let queued = |id: OperationId| {
            let acquisition = self.acquisitions.get(&id)?;
            let is_queued = acquisition.members[member].is_queued();
            is_queued.then(|| (id, Arc::clone(&acquisition.claim)))
        };
        let locks = self.waiters.by_lock();
        let oldest = locks.filter_map(|mut waiters| waiters.find_map(queued));
        let mut waits: Vec<(OperationId, Arc<Claim>)> = oldest.collect();
        waits.sort_unstable_by_key(|(id, _)| *id);
        self.members[member].heartbeat = Some(now.instant);
        let mut parts: Vec<&[(OperationId, Arc<Claim>)]> = waits.chunks(LOCKS_AT_ONCE).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        for part in parts {
            let (ids, claims) = part.iter().cloned().unzip();
            self.send(
                now,
                member,
                Task::Heartbeat(ids),
                Request::Heartbeat(claims),
                HEARTBEAT_EVERY,
            );
        }
    }

    pub(crate) fn take_heartbeat(
        &mut self,
        now: Now,
        member: usize,
        waits: Vec<OperationId>,
        reply: Reply,
    ) {
        let Reply::Waiting(answers) = reply else {
            return;
        };
        for (id, answer) in waits.into_iter().zip(answers) {
            let Some(acquisition) = self.acquisitions.get_mut(&id) else {
                continue;
            };
            let member_state = &mut acquisition.members[member];
            let waits = member_state.asked.is_none() && member_state.is_queued();
            if !waits || acquisition.phase != Phase::Asking {
                continue;
            }
            if answer.turn || answer.busy.place.is_none() {
                self.ask(now, id, member);
            } else {
                member_state.ask_at = answer.ask_again.map(|after| now.instant + after);
                member_state.claim = ClaimState::Queued(answer.busy);
            }
            self.decide(now, id);
            self.set_wake(id);
        }
    }
}
