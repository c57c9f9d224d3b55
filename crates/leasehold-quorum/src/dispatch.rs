//! Passes replies and losses to the operations that sent the requests.

use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{Error, ErrorKind, LockRequest};

use crate::acquire::{Acquiring, Acquisition, Plain, heartbeat};
use crate::engine::Engine;
use crate::member::index::MemberIndex;
use crate::member::{Answered, Task};
use crate::messages::{Lease, Notification, Reply};
use crate::net::Net;
use crate::operation::operations::Next;
use crate::operation::{OperationId, Outcome, ReleaseMode};
use crate::record::RecordOperation;
use crate::release::{Release, Sending, send_dequeue};
use crate::waiting::admission::{Admitted, PORTION};
use crate::waiting::outage::Outage;

impl Engine {
    /// Passes an event to an acquisition, and releases what it gives back.
    pub(crate) fn acquisition(
        &mut self,
        id: OperationId,
        event: impl FnOnce(&mut Acquisition, &mut Net) -> Next,
    ) {
        let net = &mut self.net;
        self.acquisitions
            .handle(id, |it| event(it.ordinary(net), net));
        self.send_given_back();
    }

    /// Sends the releases of rounds that were given back.
    pub(crate) fn send_given_back(&mut self) {
        if self.net.given_back.is_empty() {
            return;
        }
        for back in std::mem::take(&mut self.net.given_back) {
            let mut sending = Sending::rest(back.lease);
            sending.requeue = back.requeue;
            // A member that takes no requests gets it later.
            let _ = sending.send(&mut self.net, &mut self.acquisitions, back.member);
        }
    }

    /// Begins to take a lock.
    pub(crate) fn start_acquire(&mut self, id: OperationId, lock_request: Arc<LockRequest>) {
        let net = &mut self.net;
        // Without the members' limits, the TTL is checked once they are known.
        if let Err(error) = net.membership.check_ttl(&lock_request) {
            return net.finish(id, Outcome::Failed(error));
        }
        let plain = Plain::begin(net, id, &lock_request);
        // The same owner asks again: its earlier attempt becomes part of this one.
        if let Some(former) = net.know_owner(&lock_request, id)
            && let Some(mut former) = self.acquisitions.remove(former)
        {
            former.forget(net);
        }
        match plain {
            Some(plain) => self.acquisitions.insert(id, Acquiring::Plain(plain)),
            None => {
                let ordinary = Acquisition::begin(net, id, lock_request);
                let acquiring = Acquiring::Ordinary(Box::new(ordinary));
                let begin = |it: &mut Acquiring| it.ordinary(net).advance(net);
                self.acquisitions.start(id, acquiring, begin);
                self.send_given_back();
            }
        }
    }

    /// Begins to release a lease, or leaves it alone.
    pub(crate) fn start_release(
        &mut self,
        id: OperationId,
        mut lock_request: Arc<LockRequest>,
        mode: ReleaseMode,
    ) {
        let net = &mut self.net;
        let former = net.acquisition_of(&lock_request.owner);
        let mut former = former.and_then(|id| self.acquisitions.remove(id));
        if let Some(former) = &mut former {
            former.forget(net);
            let owner = former.lock_request().owner;
            if lock_request.owner != owner {
                // The caller does not know of the later round.
                lock_request = Arc::new(LockRequest::clone(&lock_request).with_owner(owner));
            }
        }
        if mode == ReleaseMode::Detach {
            // The other members would keep the entry until its turn.
            if let Some(former) = &mut former {
                let former = former.ordinary(net);
                for member in former.other_queues() {
                    send_dequeue(net, member, Arc::clone(&former.lock_request));
                }
            }
            let freed = leasehold_types::ReleaseReply::Released;
            return net.finish(id, Outcome::Released(freed));
        }
        let has_waited =
            former.is_none_or(|it| it.as_ordinary().is_some_and(Acquisition::has_waited));
        let release = Release::new(net, id, lock_request, has_waited);
        let others = &mut self.acquisitions;
        self.releases.start(id, release, |it| it.begin(net, others));
    }

    /// Sends the releases that a member could not receive before.
    pub(crate) fn send_owed(&mut self, member: MemberIndex) {
        let now = self.net.now.instant;
        let is_silent = !self.net.membership.is_reachable(member);
        while let Some(lease) = self.net.members[member].pop_owed(now, is_silent) {
            self.send_rest(member, lease);
        }
    }

    /// Sends a release whose answer no operation counts.
    pub(crate) fn send_rest(&mut self, member: MemberIndex, lease: Lease) {
        // A member that takes no requests gets it later.
        let _ = Sending::rest(lease).send(&mut self.net, &mut self.acquisitions, member);
    }

    /// Sends the heartbeats of this second, while this client has waiters.
    pub(crate) fn send_heartbeats(&mut self) {
        self.net.heartbeat.stop();
        if self.net.waiters.is_empty() {
            return;
        }
        self.net.heartbeat.keep_up(self.net.now.instant);
        self.resume_acquisitions();
        for member in self.net.members.keys() {
            heartbeat::send(&mut self.net, &self.acquisitions, member);
        }
    }

    /// Continues the acquisitions without a majority, after something changed at a member.
    pub(crate) fn resume_acquisitions(&mut self) {
        if self.net.admission.may_resume_all() {
            let ids = self.acquisitions.ids(Acquiring::is_asking);
            self.net.admission.resume(ids);
            self.admit();
        }
    }

    /// Starts or resumes the operations whose turn has come.
    fn admit(&mut self) {
        let now = self.net.now.instant;
        if self.net.admission.is_paused(now) || self.net.admission.is_empty() {
            return;
        }
        for _ in 0..PORTION {
            if !self.net.takes_more() {
                return self.net.admission.wait_for_room(now);
            }
            match self.net.admission.next() {
                Some(Admitted::Resume(id)) => self.acquisition(id, Acquisition::resume),
                Some(Admitted::ResumeAll) => {
                    let ids = self.acquisitions.ids(Acquiring::is_asking);
                    self.net.admission.resume(ids);
                }
                Some(Admitted::Begin(id, lock_request)) => self.start_acquire(id, lock_request),
                Some(Admitted::Release(id, lock_request, mode)) => {
                    self.start_release(id, lock_request, mode);
                }
                None => return,
            }
        }
        self.net.admission.pause(now);
    }

    pub(crate) fn dispatch(&mut self, from: &Answered, task: Task, reply: Reply) {
        let (member, net) = (from.member, &mut self.net);
        match task {
            Task::Background => {
                if !net.membership.is_open(member) {
                    // Other rounds did not ask it.
                    net.known_locks.forget_all();
                }
                net.membership.handle_reply(net.now.instant, member, reply);
            }
            Task::MovePermit | Task::Dequeue => {}
            Task::Attempt(id, number) => {
                self.acquisitions
                    .handle(id, |it| it.answered(net, from, number, reply));
                self.send_given_back();
            }
            Task::Confirm(id, fence) => {
                self.acquisition(id, |it, net| it.confirmed(net, from, fence, reply));
            }
            Task::Heartbeat(waits) => {
                let Reply::Waiting(answers) = reply else {
                    return;
                };
                for (id, answer) in waits.into_iter().zip(answers) {
                    self.acquisition(id, |it, net| it.heard(net, member, answer));
                }
            }
            Task::Renewal(task) if !from.late => self.renewals.answered(net, from, task, reply),
            Task::Record(id) if !from.late => {
                self.records.handle(id, |it| it.answered(net, from, reply));
            }
            Task::Renewal(_) | Task::Record(_) => {}
            Task::Free(id) => {
                let others = &mut self.acquisitions;
                self.releases.handle(id, |it| match reply {
                    Reply::Contended => it.contended(net, others, member),
                    reply => it.answered(net, from, reply),
                });
            }
            Task::Release(it) => {
                let operation = it.operation.filter(|_| !from.late);
                match reply {
                    Reply::Contended => self.take_contended(member, it.lease, operation),
                    reply => self.take_release(from, operation, it.successor, reply),
                }
            }
        }
    }

    /// The lease could not be freed alone: another client waits, and the release may begin a gap.
    fn take_contended(
        &mut self,
        member: MemberIndex,
        lease: Lease,
        operation: Option<OperationId>,
    ) {
        let (net, others) = (&mut self.net, &mut self.acquisitions);
        match operation {
            Some(id) => self
                .releases
                .handle(id, |it| it.contended(net, others, member)),
            None => {
                net.waiters
                    .note_busy(&lease.lock_request.key, net.now.instant);
                self.send_rest(member, lease);
            }
        }
    }

    fn take_release(
        &mut self,
        from: &Answered,
        operation: Option<OperationId>,
        successor: Option<(OperationId, u32)>,
        reply: Reply,
    ) {
        if let Some((id, number)) = successor {
            let got = match &reply {
                Reply::Released { successor, .. } => *successor,
                _ => None,
            };
            self.acquisition(id, |it, net| it.succeeded(net, from, number, got));
        }
        if let Some(id) = operation {
            let net = &mut self.net;
            self.releases.handle(id, |it| it.answered(net, from, reply));
        }
    }

    /// A request has no reply, or has none in time.
    pub(crate) fn lose(&mut self, member: MemberIndex, task: Task, error: Error) {
        let net = &mut self.net;
        match task {
            Task::Attempt(id, number) => {
                self.acquisition(id, |it, net| it.lost(net, member, number, error));
            }
            Task::Confirm(id, fence) => {
                self.acquisition(id, |it, net| it.unconfirmed(net, member, fence));
            }
            Task::Record(id) => self.records.handle(id, |it| it.lost(net, member, error)),
            Task::Renewal(task) => self.renewals.lost(net, member, task, error),
            Task::Free(id) => self.releases.handle(id, |it| it.lost(net, member, error)),
            Task::Release(it) => {
                if let Some((id, number)) = it.successor {
                    let error = error.clone();
                    self.acquisition(id, |it, net| it.lost(net, member, number, error));
                }
                if let Some(id) = it.operation {
                    let net = &mut self.net;
                    self.releases.handle(id, |it| it.lost(net, member, error));
                }
            }
            Task::Heartbeat(_) | Task::MovePermit | Task::Dequeue | Task::Background => {}
        }
    }

    /// A member notified a waiter that this client does not have. Its entry may have been left behind, so it
    /// leaves the queue. A message is only a hint, which anyone may publish, so no lease ends.
    pub(crate) fn dequeue_unknown(&mut self, member: MemberIndex, notification: Notification) {
        let Notification { key, waiter, mode } = notification;
        let own = self.client.as_ref().filter(|it| it.id == waiter.client());
        let Some(client) = own.cloned() else {
            return;
        };
        if self.net.members[member].is_full() {
            // The member notifies the entry again.
            return;
        }
        let now = self.net.now.wall;
        let lock_request = LockRequest::new(key, waiter, DEQUEUE_TERM, now, client).with_mode(mode);
        send_dequeue(&mut self.net, member, Arc::new(lock_request));
    }

    /// Sends the requests of the membership, and continues what waits for members.
    pub(crate) fn run_pending(&mut self) {
        self.admit();
        loop {
            let net = &mut self.net;
            net.send_background();
            while let Some((member, owner)) = net.repaired.pop() {
                if let Some(id) = net.owners.get(&owner) {
                    self.acquisitions
                        .handle(*id, |it| it.ordinary(net).doubt(member));
                }
            }
            if net.membership.take_changed(net.now.instant) {
                net.outage.as_mut().map(Outage::expire);
                self.renewals.resume(net);
                let others = &mut self.acquisitions;
                self.releases
                    .handle_all(Release::is_waiting, |it| it.advance(net, others));
                self.records
                    .handle_all(RecordOperation::is_waiting, |it| it.advance(net));
                self.health_checks
                    .handle_all(|_| true, |it| it.advance(net));
                self.resume_acquisitions();
                continue;
            }
            let Some((member, task)) = net.pop_unsent() else {
                break;
            };
            let error = Error::new(ErrorKind::Unreachable, "not connected");
            self.lose(member, task, error);
        }
    }
}

/// An entry that was left behind has no lease. This only limits the time of the request.
const DEQUEUE_TERM: Duration = Duration::from_secs(1);
