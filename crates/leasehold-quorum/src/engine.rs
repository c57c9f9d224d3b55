use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use leasehold_types::{BootInstant, ClientInfo, Error, Held, Incarnation, LockRequest, Owner};

use crate::acquire::{Acquiring, Acquisition, heartbeat};
use crate::ballot::majority;
use crate::config::{Config, Now};
use crate::health::HealthCheck;
use crate::member::index::{MemberIndex, Members};
use crate::member::{Answered, Member, Task, late};
use crate::membership::MemberEvent;
use crate::messages::{BatchReply, Lease, Notification, Reply, Request, RequestId};
use crate::net::{Net, Timer};
use crate::operation::operations::Operations;
use crate::operation::{Event, Operation, OperationId};
use crate::record::RecordOperation;
use crate::release::Release;
use crate::renewal::Renewals;

/// The state of all operations of one client.
///
/// Each `handle_` method takes in one event. Afterwards the driver calls the `poll_` methods until they
/// return `None`.
#[derive(Debug)]
pub struct Engine {
    pub(crate) net: Net,
    pub(crate) acquisitions: Operations<Acquiring>,
    pub(crate) releases: Operations<Release>,
    pub(crate) renewals: Renewals,
    pub(crate) records: Operations<RecordOperation>,
    pub(crate) health_checks: Operations<HealthCheck>,
    /// The client, as its first operation names it.
    pub(crate) client: Option<Arc<ClientInfo>>,
}

impl Engine {
    /// Returns an engine whose members are not connected yet, in the order of `config.set.ids`.
    pub fn new(config: Config) -> Self {
        Self {
            net: Net::new(config),
            acquisitions: Operations::default(),
            releases: Operations::default(),
            renewals: Renewals::default(),
            records: Operations::default(),
            health_checks: Operations::default(),
            client: None,
        }
    }

    /// Begins an operation. The caller chooses its id, which must not have been used before.
    pub fn start(&mut self, now: Now, id: OperationId, operation: Operation) {
        self.net.now = now;
        self.net.membership.begin(now.instant);
        match operation {
            Operation::Acquire(lock_request) => {
                self.client
                    .get_or_insert_with(|| Arc::clone(&lock_request.client));
                if self.net.has_room() {
                    self.start_acquire(id, lock_request);
                } else {
                    self.net.admission.begin(id, lock_request);
                }
            }
            Operation::Renew(leases) => {
                let leases = self.with_permits(leases);
                self.renewals.start(&mut self.net, id, leases);
            }
            Operation::Release(lock_request, mode) => {
                self.renewals.end(&mut self.net, &lock_request, mode);
                if self.net.has_room() {
                    self.start_release(id, lock_request, mode);
                } else {
                    self.net.admission.release(id, lock_request, mode);
                }
            }
            Operation::Record(record, action) => {
                let operation = RecordOperation::new(&self.net, id, record, action);
                let net = &mut self.net;
                self.records.start(id, operation, |it| it.advance(net));
            }
            Operation::Health => {
                let check = HealthCheck::new(&mut self.net, id);
                let net = &mut self.net;
                self.health_checks.start(id, check, |it| it.advance(net));
            }
        }
        self.run_pending();
    }

    /// Ends an operation early; no outcome follows. The engine releases in the background what an
    /// acquisition may have left behind. A renewal or a release continues.
    pub fn cancel(&mut self, now: Now, id: OperationId) {
        self.net.now = now;
        if !self.net.admission.cancel(id) {
            self.acquisition(id, Acquisition::cancel);
        }
        if let Some(operation) = self.records.remove(id) {
            operation.cancel(&mut self.net);
        }
        if let Some(check) = self.health_checks.remove(id) {
            check.cancel(&mut self.net);
        }
        self.run_pending();
    }

    /// Says whether the member knows the [plain commands](Request::TryAcquire). The default is that it
    /// does. Call this before [`Engine::handle_connect`].
    pub fn allow_plain_commands(&mut self, member: MemberIndex, allowed: bool) {
        self.net.members[member].scripts_only = !allowed;
    }

    /// The driver connected to the member, authenticated, and listens for notifications.
    pub fn handle_connect(&mut self, now: Now, member: MemberIndex) {
        self.net.now = now;
        self.net.members[member].connected = Some(now.instant);
        self.net.membership.connected(now.instant, member);
        self.net.known_locks.forget_all();
        if self.net.heartbeat.is_due_to_any() {
            heartbeat::send(&mut self.net, &self.acquisitions, member);
        }
        self.send_owed(member);
        self.run_pending();
    }

    /// Takes in the replies to a batch.
    pub fn handle_replies(&mut self, now: Now, member: MemberIndex, batch: BatchReply) {
        self.net.now = now;
        let BatchReply { sample, replies } = batch;
        self.net.admission.widen(replies.len());
        if self.net.members[member].data() != Some(&sample.incarnation) {
            self.data_changed(member, &sample.incarnation);
        }
        let mut is_read = false;
        for (id, reply) in replies {
            let Some(flight) = self.net.members[member].answered(id, now.instant) else {
                continue;
            };
            if !self.net.members[member].owes_nothing() {
                // Before a waiter that was released may ask again.
                self.send_owed(member);
            }
            if !std::mem::replace(&mut is_read, true) {
                let instant = now.instant;
                self.net
                    .membership
                    .sample(instant, member, flight.sent, &sample);
            }
            if !matches!(reply, Reply::Failed(_)) && !flight.late {
                self.net.membership.answered(member, reply.grants());
            }
            let from = Answered {
                member,
                sent: flight.sent,
                incarnation: &sample.incarnation,
                late: flight.late,
            };
            self.dispatch(&from, flight.task, reply);
        }
        self.run_pending();
    }

    /// Takes in a notification.
    pub fn handle_notification(
        &mut self,
        now: Now,
        member: MemberIndex,
        notification: Notification,
    ) {
        self.net.now = now;
        match self.net.owners.get(&notification.waiter).copied() {
            Some(id) => self.acquisition(id, |it, net| it.notified(net, member)),
            None => self.dequeue_unknown(member, notification),
        }
        self.run_pending();
    }

    /// The connection broke or could not be opened. Requests without a reply may have taken effect.
    pub fn handle_disconnect(&mut self, now: Now, member: MemberIndex, error: Error) {
        self.net.now = now;
        let flights = self.net.members[member].disconnect();
        self.net
            .membership
            .disconnected(now.instant, member, error.clone());
        self.net.drop_transmits(member);
        let lost = error.with_unknown_effect();
        for flight in flights {
            if let Some(lease) = lease_of(&self.releases, &flight.task) {
                self.net.members[member].owe(lease, now.instant);
            }
            if !flight.late {
                self.lose(member, flight.task, lost.clone());
            }
        }
        for acquisition in self.acquisitions.values_mut() {
            acquisition.disconnected(member);
        }
        self.run_pending();
    }

    /// Handles timers that are due. Call it at [`Engine::next_timeout`] or later.
    pub fn handle_timeout(&mut self, now: Now) {
        self.net.now = now;
        for member in self.net.members.keys() {
            let lease_of = |task: &Task| lease_of(&self.releases, task);
            for (task, sent, limit) in self.net.members[member].expire(now.instant, lease_of) {
                if !matches!(task, Task::Background) {
                    self.net.admission.narrow();
                    self.net
                        .membership
                        .silent(now.instant, member, sent, &late(limit));
                }
                self.lose(member, task, late(limit));
            }
        }
        self.net.membership.handle_timeout(now.instant);
        while let Some(timer) = self.net.pop_timer() {
            let net = &mut self.net;
            match timer {
                Timer::Acquire(id) => {
                    self.acquisitions.handle(id, |it| it.wake(net));
                    self.send_given_back();
                    let net = &mut self.net;
                    self.acquisitions.handle(id, |it| it.ask_due(net));
                    self.send_given_back();
                }
                Timer::Release(id) => {
                    let others = &mut self.acquisitions;
                    self.releases.handle(id, |it| it.wake(net, others));
                }
                Timer::Record(id) => self.records.handle(id, |it| it.wake(net)),
                Timer::Health(id) => self.health_checks.handle(id, |it| it.wake(net)),
                Timer::Repairs => self.renewals.wake(net),
            }
        }
        if self.net.take_resume() {
            self.resume_acquisitions();
        }
        if self.net.heartbeat.is_due(now.instant) {
            self.send_heartbeats();
        }
        self.run_pending();
    }

    /// Returns the next request, and the members to send it to. The driver calls this until it returns `None`.
    pub fn poll_transmit(&mut self) -> Option<(Members, RequestId, Request)> {
        self.net.pop_transmit()
    }

    /// Returns the next event of an operation. The driver calls this until it returns `None`.
    pub fn poll_event(&mut self) -> Option<(OperationId, Event)> {
        self.net.pop_event()
    }

    /// Returns the next news of a member, for logs and metrics.
    pub fn poll_member_event(&mut self) -> Option<MemberEvent> {
        self.net.membership.poll_event()
    }

    /// Returns when [`Engine::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<BootInstant> {
        self.net.next_timeout()
    }

    /// Returns the owner of an acquisition. It changes when a waiter gives a round back.
    pub fn owner_of(&self, id: OperationId) -> Option<Owner> {
        let begun = self.acquisitions.get(id).map(Acquiring::lock_request);
        Some(begun.or_else(|| self.net.admission.request(id))?.owner)
    }

    /// Returns whether the engine has nothing left to send or to wait for at members that are connected.
    pub fn is_idle(&self) -> bool {
        let quiet = |member: &Member| member.connected.is_none() || member.is_idle();
        self.net.has_no_output() && self.releases.is_empty() && self.net.members.iter().all(quiet)
    }

    /// Returns whether a majority decided each release, and the driver has all requests. What is left is the
    /// replies of members that are slow.
    pub fn is_decided(&self) -> bool {
        self.net.has_no_output() && self.releases.values().all(Release::is_decided)
    }

    /// Returns how many leases may stay taken until they end: the members that confirmed the release, or never got a
    /// request, are no majority.
    pub fn unconfirmed_releases(&self, now: BootInstant) -> usize {
        let members = &self.net.members;
        let mut lacking: HashMap<Owner, usize> = HashMap::default();
        for (index, member) in members.iter_enumerated() {
            let sent = member
                .tasks()
                .filter_map(|task| lease_of(&self.releases, task));
            let requests = sent.chain(member.owed(now)).map(|it| it.lock_request);
            // Another client may have asked for a lease that this one releases.
            let was_met = self.net.membership.was_met(index);
            let asked = requests.filter(|it| was_met || it.owner.client() != it.client.id);
            let owners: HashSet<Owner> = asked.map(|request| request.owner).collect();
            owners
                .into_iter()
                .for_each(|owner| *lacking.entry(owner).or_default() += 1);
        }
        let is_taken = |lacking: &&usize| members.len() - **lacking < majority(members.len());
        lacking.values().filter(is_taken).count()
    }

    /// Sends the releases again that members have not answered. The client may end before they do, and the first
    /// request of a release may change nothing and ask for another one.
    pub fn repeat_releases(&mut self, now: Now) {
        self.net.now = now;
        for member in self.net.members.keys() {
            let tasks = self.net.members[member].tasks();
            let releases = tasks.filter(|task| match task {
                Task::Release(it) => it.operation.is_some(),
                _ => true,
            });
            let leases = releases.filter_map(|task| lease_of(&self.releases, task));
            for lease in leases.collect::<Vec<Lease>>() {
                self.send_rest(member, lease);
            }
        }
    }

    /// The member replies from other data than before. It may have no counter that expires.
    fn data_changed(&mut self, member: MemberIndex, data: &Incarnation) {
        for acquisition in self.acquisitions.values_mut() {
            acquisition.data_changed(&self.net, member);
        }
        self.net.members[member].set_data(data);
        self.net.known_locks.forget_all();
    }

    /// Names the permit of each lease, as members granted it.
    fn with_permits(&self, mut leases: Vec<Held>) -> Vec<Held> {
        let unnamed =
            |held: &&mut Held| held.request.mode.permits().is_some() && held.request.slot.is_none();
        for held in leases.iter_mut().filter(unnamed) {
            let id = self.net.owners.get(&held.request.owner);
            let acquisition = id.and_then(|id| self.acquisitions.get(*id)?.as_ordinary());
            if let Some(slot) = acquisition.and_then(Acquisition::commonest_slot) {
                let lock_request = LockRequest::clone(&held.request);
                held.request = Arc::new(lock_request.with_slot(slot));
            }
        }
        leases
    }
}

/// Returns the lease that a request releases, if it does.
fn lease_of(releases: &Operations<Release>, task: &Task) -> Option<Lease> {
    match task {
        Task::Release(it) => Some(it.lease.clone()),
        Task::Free(id) => releases.get(*id).map(Release::lease),
        _ => None,
    }
}
