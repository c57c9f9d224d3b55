use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use foldhash::HashMap;
use leasehold_types::{BootInstant, Claim, ClientInfo, Entropy, Error, MemberSet, Owner, WallTime};

use crate::acquire::state::Acquisition;
use crate::member::{Answered, Member, Task, late};
use crate::membership::{MemberEvent, Membership};
use crate::operation::{Operation, OperationId, Outcome, Progress};
use crate::record::operation::Records;
use crate::release::state::Release;
use crate::renewal::Renewals;
use crate::reply::{BatchReply, Notification, Reply};
use crate::request::{Lease, Request, RequestId};
use crate::waiting::waiters::{Heartbeat, Waiters};

/// The present instant, by the client's two clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The clock that measures leases.
    pub instant: BootInstant,
    /// The wall clock, for fences only.
    pub wall: WallTime,
}

/// What the clients of a quorum agree on.
#[derive(Debug)]
pub struct Config {
    /// The members and the limits of the quorum.
    pub set: MemberSet,
    /// Whether only trusted members have a vote. Otherwise each answer counts.
    pub enforced: bool,
    /// Whether the engine leaves the members' records alone, for tools that only read.
    pub read_only: bool,
    /// The source of random numbers.
    pub entropy: Arc<dyn Entropy>,
}

/// The state of all operations of one client.
///
/// Each `handle_` method takes in one event. Afterwards the driver calls the `poll_` methods until they
/// return `None`.
#[derive(Debug)]
pub struct Engine {
    pub(crate) membership: Membership,
    pub(crate) members: Vec<Member>,
    pub(crate) acquisitions: HashMap<OperationId, Acquisition>,
    /// The acquisition of each owner: a wait, or a lease that is held.
    pub(crate) by_owner: HashMap<Owner, OperationId>,
    pub(crate) waiters: Waiters,
    pub(crate) releases: HashMap<OperationId, Release>,
    pub(crate) renewals: Renewals,
    pub(crate) records: Records,
    /// The health checks that wait for statuses, and when they began.
    pub(crate) health_checks: BTreeMap<OperationId, BootInstant>,
    pub(crate) heartbeat: Heartbeat,
    /// When to look at operations again.
    timers: BTreeSet<(BootInstant, OperationId)>,
    transmits: VecDeque<(usize, RequestId, Request)>,
    /// Requests to members that are not connected.
    pub(crate) unsent: VecDeque<(usize, Task)>,
    events: VecDeque<(OperationId, Result<Outcome, Progress>)>,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// The client, as its first operation names it.
    pub(crate) client: Option<Arc<ClientInfo>>,
    next_request: u64,
}

impl Engine {
    /// Returns an engine whose members are not connected yet, in the order of `config.set.ids`.
    pub fn new(config: Config) -> Self {
        let Config {
            set,
            enforced,
            read_only,
            entropy,
        } = config;
        Self {
            members: set.ids.iter().map(|_| Member::default()).collect(),
            membership: Membership::new(set, enforced, read_only, Arc::clone(&entropy)),
            acquisitions: HashMap::default(),
            by_owner: HashMap::default(),
            waiters: Waiters::default(),
            releases: HashMap::default(),
            renewals: Renewals::default(),
            records: Records::default(),
            health_checks: BTreeMap::new(),
            heartbeat: Heartbeat::default(),
            timers: BTreeSet::new(),
            transmits: VecDeque::new(),
            unsent: VecDeque::new(),
            events: VecDeque::new(),
            entropy,
            client: None,
            next_request: 0,
        }
    }

    /// Begins an operation. The caller chooses its id, which must not have been used before.
    pub fn start(&mut self, now: Now, id: OperationId, operation: Operation) {
        self.membership.begin(now.instant);
        match operation {
            Operation::Acquire(claim) => {
                self.client.get_or_insert_with(|| Arc::clone(&claim.client));
                self.start_acquire(now, id, claim);
            }
            Operation::Renew(leases) => {
                let leases = self.with_permits(leases);
                let instant = now.instant;
                self.renewals
                    .start(instant, id, leases, &mut self.membership);
            }
            Operation::Release(claim, mode) => {
                self.renewals.end(now.instant, &claim, mode);
                self.start_release(now, id, claim, mode);
            }
            Operation::Record(record, action) => self.start_record(now, id, record, action),
            Operation::Health => self.start_health_check(now, id),
        }
        self.run_pending(now);
    }

    /// Ends an operation early; no outcome follows. The engine releases in the background what an
    /// acquisition may have left behind. A renewal or a release continues.
    pub fn cancel(&mut self, now: Now, id: OperationId) {
        self.cancel_acquire(now, id);
        self.cancel_record(id);
        self.cancel_health_check(id);
        self.run_pending(now);
    }

    /// Says whether the member knows the [plain commands](Request::TryAcquire). The default is that it
    /// does. Call this before [`Engine::handle_connect`].
    pub fn allow_plain_commands(&mut self, member: usize, allowed: bool) {
        self.members[member].scripts_only = !allowed;
    }

    /// The driver connected to the member, authenticated, and listens for notifications.
    pub fn handle_connect(&mut self, now: Now, member: usize) {
        self.members[member].connected = Some(now.instant);
        self.membership.connected(now.instant, member);
        if self.heartbeat.is_due_to_any() {
            self.send_heartbeat(now, member);
        }
        self.send_owed(now, member);
        self.run_pending(now);
    }

    /// Takes in the replies to a batch.
    pub fn handle_replies(&mut self, now: Now, member: usize, batch: BatchReply) {
        let BatchReply { sample, replies } = batch;
        self.members[member].replies_from(&sample.incarnation);
        let mut is_read = false;
        for (id, reply) in replies {
            let Some(flight) = self.members[member].answered(id, now.instant) else {
                continue;
            };
            // Before a waiter that was released may ask again.
            self.send_owed(now, member);
            if !std::mem::replace(&mut is_read, true) {
                let instant = now.instant;
                self.membership
                    .sample(instant, member, flight.sent, &sample);
            }
            if !matches!(reply, Reply::Failed(_)) && !flight.late {
                self.membership.answered(member, reply.grants());
            }
            let from = Answered {
                member,
                sent: flight.sent,
                incarnation: sample.incarnation.clone(),
                late: flight.late,
            };
            self.dispatch(now, &from, flight.task, reply);
        }
        self.run_pending(now);
    }

    /// Takes in a notification.
    pub fn handle_notification(&mut self, now: Now, member: usize, notification: Notification) {
        match self.by_owner.get(&notification.waiter) {
            Some(id) => self.take_turn(now, member, *id),
            None => self.dequeue_unknown(now, member, notification),
        }
        self.run_pending(now);
    }

    /// The connection broke or could not be opened. Requests without a reply may have taken effect.
    pub fn handle_disconnect(&mut self, now: Now, member: usize, error: Error) {
        let flights = self.members[member].disconnect();
        self.membership
            .disconnected(now.instant, member, error.clone());
        self.transmits.retain(|(to, ..)| *to != member);
        let lost = error.with_unknown_effect();
        for flight in flights {
            if let Task::Release { lease, .. } = &flight.task {
                self.members[member].owe(lease.clone(), now.instant);
            }
            if !flight.late {
                self.lose(now, member, flight.task, lost.clone());
            }
        }
        self.disconnect_waits(member);
        self.run_pending(now);
    }

    /// Handles timers that are due. Call it at [`Engine::next_timeout`] or later.
    pub fn handle_timeout(&mut self, now: Now) {
        for member in 0..self.members.len() {
            for (task, sent, limit) in self.members[member].expire(now.instant) {
                if !matches!(task, Task::Background) {
                    self.membership
                        .silent(now.instant, member, sent, &late(limit));
                }
                self.lose(now, member, task, late(limit));
            }
        }
        self.membership.handle_timeout(now.instant);
        self.renewals.handle_timeout(now.instant);
        while let Some((at, id)) = self
            .timers
            .first()
            .copied()
            .filter(|it| it.0 <= now.instant)
        {
            self.timers.remove(&(at, id));
            // The id does not say what kind of operation it is. Each of these ignores the others' ids.
            self.wake(now, id);
            self.advance_release(now, id);
            self.advance_record(now, id);
            self.advance_health_checks(now);
        }
        if self.heartbeat.is_due(now.instant) {
            self.send_heartbeats(now);
        }
        self.run_pending(now);
    }

    /// Returns the next request to send. The driver calls this until it returns `None`.
    pub fn poll_transmit(&mut self) -> Option<(usize, RequestId, Request)> {
        self.transmits.pop_front()
    }

    /// Returns the next event of an operation. The driver calls this until it returns `None`.
    pub fn poll_event(&mut self) -> Option<(OperationId, Result<Outcome, Progress>)> {
        self.events.pop_front()
    }

    /// Returns the next news of a member, for logs and metrics.
    pub fn poll_member_event(&mut self) -> Option<MemberEvent> {
        self.membership.poll_event()
    }

    /// Returns when [`Engine::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<BootInstant> {
        let members = self.members.iter().filter_map(Member::next_timeout);
        let others = [
            self.membership.next_timeout(),
            self.renewals.next_timeout(),
            self.timers.first().map(|(at, _)| *at),
            self.heartbeat.next(),
        ];
        members.chain(others.into_iter().flatten()).min()
    }

    /// Returns the owner of an acquisition. It changes when a waiter gives a round back.
    pub fn owner_of(&self, id: OperationId) -> Option<Owner> {
        Some(self.acquisitions.get(&id)?.claim.owner)
    }

    /// Returns whether the engine has nothing left to send or to wait for at members that are connected.
    pub fn is_idle(&self) -> bool {
        let quiet = |member: &Member| member.connected.is_none() || member.is_idle();
        self.has_no_output() && self.releases.is_empty() && self.members.iter().all(quiet)
    }

    pub(crate) fn has_no_output(&self) -> bool {
        self.transmits.is_empty()
    }

    pub(crate) fn send(
        &mut self,
        now: Now,
        member: usize,
        task: Task,
        request: Request,
        limit: Duration,
    ) {
        if self.members[member].connected.is_none() {
            return self.unsent.push_back((member, task));
        }
        let id = RequestId(self.next_request);
        self.next_request += 1;
        self.members[member].push(id, task, now.instant, limit);
        self.transmits.push_back((member, id, request));
    }

    pub(crate) fn progress(&mut self, id: OperationId, progress: Progress) {
        self.events.push_back((id, Err(progress)));
    }

    pub(crate) fn finish(&mut self, id: OperationId, outcome: Outcome) {
        self.events.push_back((id, Ok(outcome)));
    }

    /// Forgets the events of an operation that was cancelled.
    pub(crate) fn drop_events(&mut self, id: OperationId) {
        self.events.retain(|(it, _)| *it != id);
    }

    pub(crate) fn set_timer(
        &mut self,
        id: OperationId,
        old: Option<BootInstant>,
        new: Option<BootInstant>,
    ) {
        if let Some(old) = old {
            self.timers.remove(&(old, id));
        }
        if let Some(new) = new {
            self.timers.insert((new, id));
        }
    }

    /// How long one member may take to answer a request about a lease of this TTL.
    pub(crate) fn limit_of(&self, ttl: Duration) -> Duration {
        if self.members.len() == 1 {
            (ttl / 3).min(Claim::LIMIT_MAX)
        } else {
            (ttl / 20).clamp(Duration::from_millis(50), Duration::from_secs(1))
        }
    }

    /// Names the lease of a claim in a release, which does not send the fence.
    pub(crate) fn lease_of(claim: &Arc<Claim>) -> Lease {
        Lease {
            claim: Arc::clone(claim),
            fence: leasehold_types::Fence::MAX,
            slot: None,
        }
    }
}

/// How long a member may take for requests that concern no lease.
pub(crate) const BACKGROUND_LIMIT: Duration = Duration::from_secs(1);
