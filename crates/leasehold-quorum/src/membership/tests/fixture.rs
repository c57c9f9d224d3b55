//! A whole engine, and members that store one lock.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_types::{
    Fence, Held, LockRequest, LostReason, Owner, PermitSlot, RenewReply, WallTime,
};

use super::records::StoredRecord;
use super::*;
use crate::{
    BatchReply, Config, Engine, Event, LeaseState, Notification, Now, Operation, OperationId,
    Outcome, Progress, ReleaseMode, RequestId,
};

pub(super) const TTL: Duration = Duration::from_secs(10);

/// An engine, and members that store one lock.
pub(super) struct Fixture {
    pub(super) quorum: TestQuorum,
    engine: Engine,
    started: u64,
    /// Which owners hold the lock at each member, with their fence.
    pub(super) holders: Vec<BTreeMap<Owner, u64>>,
    pub(super) counters: Vec<u64>,
    pub(super) records: Vec<StoredRecord>,
    /// The members that answer no request.
    pub(super) deaf: BTreeSet<usize>,
    /// The reply of this member to such a request is lost.
    pub(super) lost: Option<(usize, &'static str)>,
    /// This member loses its data right before it confirms a fence.
    pub(super) forgets_grant: Option<usize>,
    pub(super) outcomes: BTreeMap<OperationId, Outcome>,
    /// What waiters learned, as text.
    pub(super) progress: Vec<String>,
    pub(super) events: Vec<String>,
    /// How long a reply takes.
    pub(super) round_trip: Duration,
    /// The names of the requests that each member got.
    pub(super) got: Vec<Vec<&'static str>>,
    /// The permit that each member grants, if the lock has any.
    pub(super) slots: Vec<PermitSlot>,
    /// The notifications that follow the replies.
    turns: Vec<(usize, Notification)>,
}

impl Fixture {
    /// A client of a quorum that was initialized long ago.
    pub(super) fn new(members: usize) -> Self {
        let (quorum, _) = TestQuorum::new(members);
        Self::of(quorum, members, true)
    }

    pub(super) fn of(quorum: TestQuorum, members: usize, enforced: bool) -> Self {
        let mut fixture = Self::unconnected(quorum, members, enforced);
        (0..members).for_each(|member| fixture.connect(member));
        fixture
    }

    pub(super) fn unconnected(quorum: TestQuorum, members: usize, enforced: bool) -> Self {
        let config = Config {
            set: set(members),
            enforced,
            read_only: false,
            entropy: Arc::new(RandomEntropy),
        };
        let servers = quorum.servers.len();
        Self {
            quorum,
            engine: Engine::new(config),
            started: 0,
            holders: vec![BTreeMap::new(); servers],
            counters: vec![0; servers],
            records: vec![StoredRecord::default(); servers],
            deaf: BTreeSet::new(),
            lost: None,
            forgets_grant: None,
            outcomes: BTreeMap::new(),
            progress: Vec::new(),
            events: Vec::new(),
            round_trip: Duration::from_millis(1),
            got: vec![Vec::new(); servers],
            slots: Vec::new(),
            turns: Vec::new(),
        }
    }

    pub(super) fn now(&self) -> Now {
        Now {
            instant: self.quorum.ours(),
            wall: WallTime::from_micros(self.quorum.now.as_micros() as u64),
        }
    }

    pub(super) fn connect(&mut self, member: usize) {
        self.engine.handle_connect(self.now(), member.into());
        self.pump();
    }

    pub(super) fn disconnect(&mut self, member: usize) {
        let error = unreachable("connection reset");
        self.engine
            .handle_disconnect(self.now(), member.into(), error);
        self.pump();
    }

    /// Sends and answers requests until there are none.
    pub(super) fn pump(&mut self) {
        for _ in 0..1000 {
            let mut batches: BTreeMap<usize, Vec<(RequestId, Request)>> = BTreeMap::new();
            while let Some((members, id, request)) = self.engine.poll_transmit() {
                for member in members.iter() {
                    let batch = batches.entry(member.into()).or_default();
                    batch.push((id, request.clone()));
                }
            }
            self.collect();
            if batches.is_empty() {
                return;
            }
            self.quorum.now += self.round_trip / 2;
            let mut answers = Vec::new();
            for (member, requests) in batches {
                let reply = |(id, request)| (id, self.reply(member, request));
                let replies = requests.into_iter().map(reply).collect();
                let last = self.got[member].last().copied().map(|name| (member, name));
                if self.deaf.contains(&member) || self.lost.is_some() && self.lost == last {
                    continue;
                }
                let sample = self.quorum.sample(member);
                answers.push((member, BatchReply { sample, replies }));
            }
            self.quorum.now += self.round_trip / 2;
            for (member, batch) in answers {
                self.engine.handle_replies(self.now(), member.into(), batch);
            }
            for (member, turn) in std::mem::take(&mut self.turns) {
                let now = self.now();
                self.engine.handle_notification(now, member.into(), turn);
            }
        }
        panic!("the engine never stops sending");
    }

    pub(super) fn collect(&mut self) {
        while let Some((id, event)) = self.engine.poll_event() {
            match event {
                Event::Done(outcome) => drop(self.outcomes.insert(id, outcome)),
                Event::Progress(Progress::Unavailable(error)) => {
                    self.progress.push(error.to_string());
                }
                Event::Progress(Progress::Busy(_)) => {}
            }
        }
        while let Some(event) = self.engine.poll_member_event() {
            self.events.push(format!("{event:?}"));
        }
    }

    pub(super) fn pass(&mut self, span: Duration) {
        let end = self.quorum.now + span;
        for _ in 0..10_000 {
            let due = self.engine.next_timeout();
            let Some(due) = due.filter(|due| *due <= self.quorum.at(end)) else {
                self.quorum.now = self.quorum.now.max(end);
                return;
            };
            self.quorum.now += due.since(self.quorum.ours());
            self.engine.handle_timeout(self.now());
            self.pump();
        }
        panic!("timers never end");
    }

    pub(super) fn reply(&mut self, member: usize, request: Request) -> Reply {
        self.got[member].push(name_of(&request));
        let requeue = match &request {
            Request::Release { requeue, .. } => *requeue,
            _ => None,
        };
        let holders = &mut self.holders[member];
        match request {
            Request::Acquire {
                lock_request,
                proposal,
                position,
                ..
            } => {
                let is_queued = matches!(position, crate::Position::Ticket(_));
                self.grant(member, &lock_request, proposal, is_queued)
            }
            Request::TryAcquire {
                lock_request,
                proposal,
                ..
            } => self.grant(member, &lock_request, proposal, false),
            Request::Renew(leases) => {
                let state = |owner| match holders.contains_key(&owner) {
                    true => LeaseState::Renewed,
                    false => LeaseState::Lost(LostReason::Gone),
                };
                Reply::Renewed(
                    leases
                        .iter()
                        .map(|it| state(it.lock_request.owner))
                        .collect(),
                )
            }
            Request::Repair(leases) => {
                for lease in &leases {
                    holders.insert(lease.lock_request.owner, lease.fence.get());
                }
                Reply::Repaired(vec![true; leases.len()])
            }
            Request::Free { lock_request } | Request::Release { lock_request, .. } => {
                if let Some(next) = requeue {
                    let (key, mode) = (lock_request.key.clone(), lock_request.mode);
                    let waiter = next.owner;
                    self.turns
                        .push((member, Notification { key, waiter, mode }));
                }
                Reply::Released {
                    freed: holders.remove(&lock_request.owner).is_some(),
                    successor: None,
                }
            }
            Request::ConfirmFence { fence, .. } => {
                if self.forgets_grant == Some(member) {
                    self.quorum.forget(member);
                }
                self.counters[member] = self.counters[member].max(fence.get());
                Reply::Confirmed(leasehold_types::FenceConfirmation::Confirmed)
            }
            Request::Record(_, action) => Reply::Record(self.records[member].answer(&action)),
            Request::Heartbeat(waits) => {
                Reply::Waiting(vec![crate::Refusal::default(); waits.len()])
            }
            other => self.quorum.reply(member, other),
        }
    }

    fn grant(
        &mut self,
        member: usize,
        request: &LockRequest,
        proposal: u64,
        is_queued: bool,
    ) -> Reply {
        let holders = &mut self.holders[member];
        if holders.keys().any(|holder| *holder != request.owner) {
            let mut refusal = crate::Refusal::default();
            refusal.busy.position = is_queued.then_some(1);
            return Reply::Busy(refusal);
        }
        let fence = proposal.max(self.counters[member] + 1);
        self.counters[member] = fence;
        holders.insert(request.owner, fence);
        let (fence, slot) = (Fence::new(fence).unwrap(), self.slots.get(member).copied());
        Reply::Granted { fence, slot }
    }

    pub(super) fn start(&mut self, operation: Operation) -> OperationId {
        self.started += 1;
        let id = OperationId(self.started);
        self.engine.start(self.now(), id, operation);
        self.pump();
        id
    }

    /// Runs an operation for at most `span`.
    pub(super) fn run(&mut self, operation: Operation, span: Duration) -> Option<Outcome> {
        let id = self.start(operation);
        if !self.outcomes.contains_key(&id) {
            self.pass(span);
        }
        self.outcomes.remove(&id)
    }

    pub(super) fn acquire(&mut self) -> Result<Held, Error> {
        let lock_request = Arc::new(lock_request());
        match self.run(Operation::Acquire(Arc::clone(&lock_request)), TTL) {
            Some(Outcome::Acquired(acquired)) => Ok(Held {
                request: Arc::new(LockRequest::clone(&lock_request).with_owner(acquired.owner)),
                fence: acquired.fence,
            }),
            Some(Outcome::Failed(error)) => Err(error),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn renew(&mut self, held: &Held) -> RenewReply {
        match self.run(Operation::Renew(vec![held.clone()]), TTL) {
            Some(Outcome::Renewed(mut renewals)) => renewals.remove(0),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn release(&mut self, held: &Held) {
        let lock_request = Arc::clone(&held.request);
        let release = Operation::Release(lock_request, ReleaseMode::HandOver);
        self.run(release, Duration::ZERO);
    }

    pub(super) fn holds(&self, member: usize, held: &Held) -> bool {
        self.holders[member].contains_key(&held.request.owner)
    }

    pub(super) fn restart_empty(&mut self, member: usize) {
        self.quorum.restart(member, false);
        self.holders[member].clear();
        self.disconnect(member);
        self.connect(member);
    }
}

pub(super) fn lock_request() -> LockRequest {
    crate::tests::values::lock_request(TTL)
}

/// The name of a request in [`Fixture::got`].
fn name_of(request: &Request) -> &'static str {
    match request {
        Request::Status => "status",
        Request::WriteMemberRecord(_) | Request::RecordObservation(_) => "record",
        Request::Renew(_) => "renew",
        Request::Repair(_) => "repair",
        Request::Free { .. } | Request::Release { .. } => "release",
        Request::Record(..) => "a record's",
        _ => "acquire",
    }
}
