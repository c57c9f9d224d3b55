//! The engine's decisions. A test feeds replies by hand, under virtual time.

mod bursts;
mod confirming;
mod health;
mod hot_path;
mod members;
mod owners;
mod permits;
mod plain;
mod records;
mod releasing;
mod rounds;
pub(crate) mod values;
mod waiting;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_types::{
    BootInstant, Busy, ClientId, ClientInfo, Effect, Entropy, Error, ErrorKind, Fence,
    FenceConfirmation, Held, Incarnation, Key, LockRequest, LostReason, MemberId, MemberSet,
    MemberStatus, Mode, Owner, PermitSlot, Permits, ReleaseReply, RenewReply, RunId, Sample,
    WallTime,
};

use crate::*;
use rounds::refused;

pub(super) const TTL: Duration = Duration::from_secs(10);

/// Predictable numbers: 1, 2, 3 and so on.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Entropy for Counter {
    fn next_u64(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A client and its members.
pub(super) struct Fixture {
    pub(super) engine: Engine,
    started: u64,
    pub(super) events: VecDeque<(OperationId, Event)>,
    /// Requests without a reply, by member.
    sent: Vec<VecDeque<(RequestId, Request)>>,
    /// Members that do not answer status requests and heartbeats.
    pub(super) mute: Vec<bool>,
    /// The data of each member.
    pub(super) runs: Vec<u64>,
    now: Duration,
    entropy: Arc<Counter>,
    client: Arc<ClientInfo>,
}

impl Fixture {
    /// A client that has been connected to all members for two seconds.
    pub(super) fn new(members: usize) -> Self {
        let mut fixture = Self::disconnected(members);
        (0..members).for_each(|member| fixture.connect(member));
        fixture.pass(2_000);
        fixture
    }

    /// A client that is not connected yet.
    pub(super) fn disconnected(members: usize) -> Self {
        let ids = (0..members).map(|n| MemberId::new(format!("m{n}")));
        let entropy = Arc::new(Counter::default());
        let set = MemberSet::new(ids, Duration::from_secs(60), Duration::from_millis(250));
        let config = Config {
            set,
            enforced: false,
            read_only: false,
            entropy: Arc::<Counter>::clone(&entropy),
        };
        let since = WallTime::from_micros(0);
        let id = ClientId::random(&*entropy);
        let client = ClientInfo::new(id, "host".into(), 1, "test".into(), since);
        Self {
            engine: Engine::new(config),
            started: 0,
            events: VecDeque::new(),
            sent: vec![VecDeque::new(); members],
            mute: vec![false; members],
            runs: vec![0; members],
            now: Duration::from_secs(1_000),
            entropy,
            client: Arc::new(client),
        }
    }

    pub(super) fn now(&self) -> Now {
        Now {
            instant: BootInstant::from_nanos(0) + self.now,
            wall: WallTime::from_micros(self.now.as_micros() as u64),
        }
    }

    pub(super) fn micros(&self) -> u64 {
        self.now.as_micros() as u64
    }

    /// Takes in the engine's output, and answers background requests.
    fn poll(&mut self) {
        loop {
            while let Some((members, id, request)) = self.engine.poll_transmit() {
                for member in members.iter() {
                    self.sent[usize::from(member)].push_back((id, request.clone()));
                }
            }
            while let Some(event) = self.engine.poll_event() {
                self.events.push_back(event);
            }
            let background = |member: usize, request: &Request| match request {
                Request::Status => Some(Reply::Status(Box::new(self.status(member)))),
                Request::Heartbeat(waits) if waits.is_empty() => Some(Reply::Waiting(Vec::new())),
                _ => None,
            };
            let members = (0..self.sent.len()).filter(|member| !self.mute[*member]);
            let next = members.flat_map(|member| {
                let sent = self.sent[member].iter();
                sent.map(move |(id, request)| (member, *id, request))
            });
            let mut next =
                next.filter_map(|(member, id, it)| Some((member, id, background(member, it)?)));
            let Some((member, id, reply)) = next.next() else {
                return;
            };
            self.sent[member].retain(|(it, _)| *it != id);
            self.reply_to(member, id, reply);
        }
    }

    fn status(&self, member: usize) -> MemberStatus {
        let run = RunId::new(format!("{}", self.runs[member]));
        MemberStatus::new(run, self.now().wall, Duration::MAX)
    }

    /// Advances time, and fires the timers that become due.
    pub(super) fn pass(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        loop {
            let next = self.engine.next_timeout();
            let next = next.map(|at| at.since(BootInstant::from_nanos(0)));
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            self.engine.handle_timeout(self.now());
            self.poll();
        }
        self.now = end;
    }

    /// Advances time without firing timers.
    pub(super) fn pass_without_timers(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    pub(super) fn connect(&mut self, member: usize) {
        self.engine.handle_connect(self.now(), member.into());
        self.poll();
    }

    pub(super) fn disconnect(&mut self, member: usize) {
        let error = Error::new(ErrorKind::Unreachable, "the connection broke");
        self.sent[member].clear();
        self.engine
            .handle_disconnect(self.now(), member.into(), error);
        self.poll();
    }

    pub(super) fn lock_request(&self, wait: bool) -> LockRequest {
        let owner = Owner::at(self.client.id, self.now().wall, &*self.entropy);
        let key = Key::new("lock").unwrap();
        let lock_request =
            LockRequest::new(key, owner, TTL, self.now().wall, Arc::clone(&self.client));
        lock_request.waiting(wait)
    }

    pub(super) fn start(&mut self, operation: Operation) -> OperationId {
        self.started += 1;
        let id = OperationId(self.started);
        self.engine.start(self.now(), id, operation);
        self.poll();
        id
    }

    pub(super) fn acquire(&mut self, lock_request: &Arc<LockRequest>) -> OperationId {
        self.start(Operation::Acquire(Arc::clone(lock_request)))
    }

    /// Starts an attempt that does not wait.
    pub(super) fn attempt(&mut self) -> (Arc<LockRequest>, OperationId) {
        let lock_request = Arc::new(self.lock_request(false));
        let id = self.acquire(&lock_request);
        (lock_request, id)
    }

    /// Takes the lock. All members grant it with the fence 7.
    pub(super) fn held(&mut self) -> Arc<LockRequest> {
        let (lock_request, id) = self.attempt();
        (0..self.sent.len()).for_each(|member| drop(self.reply(member, granted(7))));
        self.acquired(id).expect("a lease");
        lock_request
    }

    /// Starts the renewal of a lease with the fence 7.
    pub(super) fn renew(&mut self, lock_request: &Arc<LockRequest>) -> OperationId {
        let request = Arc::clone(lock_request);
        let fence = fence(7);
        self.start(Operation::Renew(vec![Held { request, fence }]))
    }

    /// Starts a wait for a lock that was busy a moment ago, and answers the first request to each member.
    pub(super) fn wait(&mut self) -> (Arc<LockRequest>, OperationId) {
        let (lock_request, id) = self.wait_unanswered();
        for member in 0..self.sent.len() {
            self.reply(member, busy(1));
        }
        (lock_request, id)
    }

    /// Starts a wait of a request for which there is no hot path.
    pub(super) fn wait_unanswered(&mut self) -> (Arc<LockRequest>, OperationId) {
        let key = Key::new("lock").unwrap();
        self.engine.net.waiters.note_busy(&key, self.now().instant);
        let lock_request = Arc::new(self.lock_request(true));
        let id = self.acquire(&lock_request);
        (lock_request, id)
    }

    pub(super) fn release(&mut self, lock_request: &Arc<LockRequest>) -> OperationId {
        self.start(Operation::Release(
            Arc::clone(lock_request),
            ReleaseMode::HandOver,
        ))
    }

    pub(super) fn detach(&mut self, lock_request: &Arc<LockRequest>) {
        let lock_request = Arc::clone(lock_request);
        self.start(Operation::Release(lock_request, ReleaseMode::Detach));
    }

    pub(super) fn cancel(&mut self, id: OperationId) {
        self.engine.cancel(self.now(), id);
        self.poll();
    }

    pub(super) fn notify(&mut self, member: usize, lock_request: &LockRequest) {
        let notification = Notification {
            key: lock_request.key.clone(),
            waiter: self.owner_now(lock_request),
            mode: lock_request.mode,
        };
        let now = self.now();
        self.engine
            .handle_notification(now, member.into(), notification);
        self.poll();
    }

    /// The requests without a reply at a member.
    pub(super) fn sent(&self, member: usize) -> Vec<&Request> {
        self.sent[member].iter().map(|(_, it)| it).collect()
    }

    /// The only request without a reply at a member, for the lock.
    pub(super) fn asked(&self, member: usize) -> Asked {
        match self.sent(member)[..] {
            [
                Request::TryAcquire {
                    proposal, expire, ..
                },
            ] => Asked {
                proposal: *proposal,
                position: None,
                expire: *expire,
            },
            [
                Request::Acquire {
                    proposal, position, ..
                },
            ] => Asked {
                proposal: *proposal,
                position: Some(*position),
                expire: false,
            },
            ref other => panic!("{member}: {other:?}"),
        }
    }

    /// The kinds of the requests without a reply at a member.
    pub(super) fn kinds(&self, member: usize) -> Vec<&'static str> {
        self.sent(member).into_iter().map(kind).collect()
    }

    /// The member answers its oldest request.
    pub(super) fn reply(&mut self, member: usize, reply: Reply) -> Request {
        let (id, request) = self.sent[member].pop_front().expect("a request");
        self.reply_to(member, id, reply);
        self.poll();
        request
    }

    /// Each of these members answers its oldest request.
    pub(super) fn reply_all(&mut self, members: &[usize], reply: &Reply) {
        for member in members {
            self.reply(*member, reply.clone());
        }
    }

    fn reply_to(&mut self, member: usize, id: RequestId, reply: Reply) {
        let run = RunId::new(format!("{}", self.runs[member]));
        let batch = BatchReply {
            sample: Sample {
                clock: self.now().wall,
                incarnation: Incarnation::new(&run, None),
            },
            replies: vec![(id, reply)],
        };
        let now = self.now();
        self.engine.handle_replies(now, member.into(), batch);
    }

    /// The results of an operation so far, without its progress.
    pub(super) fn outcome(&mut self, id: OperationId) -> Option<Outcome> {
        let of = |(it, event): &(OperationId, Event)| *it == id && matches!(event, Event::Done(_));
        let index = self.events.iter().position(of)?;
        match self.events.remove(index)?.1 {
            Event::Done(outcome) => Some(outcome),
            Event::Progress(_) => None,
        }
    }

    pub(super) fn acquired(&mut self, id: OperationId) -> Option<Acquired> {
        match self.outcome(id)? {
            Outcome::Acquired(acquired) => Some(acquired),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn failure(&mut self, id: OperationId) -> Error {
        match self.outcome(id) {
            Some(Outcome::Failed(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn released(&mut self, id: OperationId) -> ReleaseReply {
        match self.outcome(id) {
            Some(Outcome::Released(reply)) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// Whether the renewal of one lease ended with success.
    pub(super) fn is_renewed(&mut self, id: OperationId) -> bool {
        match self.outcome(id) {
            Some(Outcome::Renewed(renewals)) => matches!(renewals[..], [RenewReply::Renewed(_)]),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn progress(&mut self) -> Vec<Progress> {
        let mut progress = Vec::new();
        for (id, event) in std::mem::take(&mut self.events) {
            match event {
                Event::Progress(news) => progress.push(news),
                Event::Done(_) => self.events.push_back((id, event)),
            }
        }
        progress
    }
}

/// What a request for the lock asks for. Plain commands have no position.
pub(super) struct Asked {
    proposal: u64,
    position: Option<Position>,
    expire: bool,
}

fn kind(request: &Request) -> &'static str {
    match request {
        Request::TryAcquire { .. } => "try",
        Request::DrawFence { .. } => "draw",
        Request::Acquire { .. } => "acquire",
        Request::Free { .. } => "free",
        Request::Release { requeue: None, .. } => "release",
        Request::Release { .. } => "requeue",
        Request::Dequeue { .. } => "dequeue",
        Request::Renew(_) => "renew",
        Request::Heartbeat(_) => "heartbeat",
        Request::ConfirmFence { .. } => "confirm",
        Request::Repair(_) => "repair",
        Request::Record(..) => "a record's",
        Request::Status => "status",
        Request::WriteMemberRecord(_) | Request::RecordObservation(_) => "record",
    }
}

pub(super) fn fence(value: u64) -> Fence {
    Fence::new(value).unwrap()
}

pub(super) fn granted(value: u64) -> Reply {
    Reply::Granted {
        fence: fence(value),
        slot: None,
    }
}

/// The waiter is in the queue at this position.
pub(super) fn busy(position: u64) -> Reply {
    let mut busy = Busy::default();
    busy.position = Some(position);
    Reply::Busy(Refusal {
        busy,
        ..Refusal::default()
    })
}

pub(super) fn released(freed: bool) -> Reply {
    Reply::Released {
        freed,
        successor: None,
    }
}
