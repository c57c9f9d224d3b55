//! What the operations of one client share: its servers, the clock, what goes out, and the timers.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use foldhash::HashMap;
use leasehold_types::{BootInstant, Entropy, Key, LockRequest, MemberFailure, Owner, WallTime};

use crate::ballot::majority;
use crate::config::{Config, Now};
use crate::errors::too_few;
use crate::known_locks::{KnownLock, KnownLocks};
use crate::member::index::{MemberIndex, Members, PerMember};
use crate::member::{HOT_PAUSE, Member, Task};
use crate::membership::{Access, Membership};
use crate::messages::{Lease, Request, RequestId, Requeue};
use crate::operation::{Event, OperationId, Outcome, Progress};
use crate::waiting::admission::Admission;
use crate::waiting::outage::Outage;
use crate::waiting::waiters::{HEARTBEAT_EVERY, Heartbeat, Waiters};

/// The servers of one client, its clock, its output, and its timers.
#[derive(Debug)]
pub(crate) struct Net {
    /// The present instant. The engine sets it at each event.
    pub(crate) now: Now,
    pub(crate) membership: Membership,
    pub(crate) members: PerMember<Member>,
    pub(crate) known_locks: KnownLocks,
    pub(crate) waiters: Waiters,
    pub(crate) heartbeat: Heartbeat,
    pub(crate) admission: Admission,
    /// Why no majority has a vote, if it was asked for.
    pub(crate) outage: Option<Outage>,
    /// When the acquisitions without a majority look again: votes may return with time alone.
    resume_at: Option<BootInstant>,
    pub(crate) entropy: Arc<dyn Entropy>,
    timers: BTreeSet<(BootInstant, Timer)>,
    transmits: VecDeque<(Members, RequestId, Request)>,
    /// Requests to members that are not connected.
    unsent: VecDeque<(MemberIndex, Task)>,
    events: VecDeque<(OperationId, Event)>,
    /// The acquisition of each owner: a wait, or a lease that is held.
    pub(crate) owners: HashMap<Owner, OperationId>,
    /// The acquisitions that are in a later round, by their first owners.
    pub(crate) first_owners: HashMap<Owner, OperationId>,
    /// The rounds that acquisitions give back.
    pub(crate) given_back: Vec<GivenBack>,
    /// Members that may have the lease of this owner from now on, because it is repaired there.
    pub(crate) repaired: Vec<(MemberIndex, Owner)>,
    next_request: u64,
    /// Takes and releases each lock in the ordinary way, for a comparison.
    #[cfg(test)]
    pub(crate) never_plain: bool,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Wakes an acquisition.
    Acquire(OperationId),
    /// Ends the wait of a release for members that are not connected yet.
    Release(OperationId),
    /// Ends the wait of a record operation for such members.
    Record(OperationId),
    /// Ends a health check.
    Health(OperationId),
    /// Releases what late repairs may have restored.
    Repairs,
}

/// A round that is given back at one member. The engine sends its release, and names a successor.
#[derive(Debug)]
pub(crate) struct GivenBack {
    pub(crate) member: MemberIndex,
    pub(crate) lease: Lease,
    pub(crate) requeue: Option<Requeue>,
}

/// Whether a member may be asked.
#[derive(Debug)]
pub(crate) enum Reach {
    Open,
    /// Not yet: its status is not known.
    Later,
    /// No, with the reason, if it has one.
    Closed(Option<MemberFailure>),
}

/// How long a member may take for requests that concern no lease.
pub(crate) const BACKGROUND_LIMIT: Duration = Duration::from_secs(1);

impl Net {
    pub(crate) fn new(config: Config) -> Self {
        let Config {
            set,
            enforced,
            read_only,
            entropy,
        } = config;
        Self {
            now: Now {
                instant: BootInstant::from_nanos(0),
                wall: WallTime::from_micros(0),
            },
            members: set.ids.iter().map(|_| Member::default()).collect(),
            membership: Membership::new(set, enforced, read_only, Arc::clone(&entropy)),
            known_locks: KnownLocks::default(),
            waiters: Waiters::default(),
            heartbeat: Heartbeat::default(),
            admission: Admission::default(),
            outage: None,
            resume_at: None,
            entropy,
            timers: BTreeSet::new(),
            transmits: VecDeque::new(),
            unsent: VecDeque::new(),
            events: VecDeque::new(),
            owners: HashMap::default(),
            first_owners: HashMap::default(),
            given_back: Vec::new(),
            repaired: Vec::new(),
            next_request: 0,
            #[cfg(test)]
            never_plain: false,
        }
    }

    pub(crate) fn send(
        &mut self,
        member: MemberIndex,
        task: Task,
        request: Request,
        limit: Duration,
    ) {
        if self.members[member].connected.is_none() {
            return self.unsent.push_back((member, task));
        }
        let (now, id) = (self.now.instant, self.next_request());
        self.members[member].push(id, task, now, now + limit);
        let transmit = (Members::only(member), id, request);
        self.transmits.push_back(transmit);
    }

    /// Sends one request to all members, which are connected.
    pub(crate) fn send_to_all(
        &mut self,
        task: impl Fn() -> Task,
        request: Request,
        limit: Duration,
    ) {
        let (now, id) = (self.now.instant, self.next_request());
        let at = now + limit;
        for member in &mut self.members {
            member.push(id, task(), now, at);
        }
        let all = Members::first(self.members.len());
        self.transmits.push_back((all, id, request));
    }

    fn next_request(&mut self) -> RequestId {
        self.next_request += 1;
        RequestId(self.next_request)
    }

    /// Sends the requests of the membership.
    pub(crate) fn send_background(&mut self) {
        while let Some((member, request)) = self.membership.poll_request() {
            self.send(member, Task::Background, request, BACKGROUND_LIMIT);
        }
    }

    /// Sends the presence of this client ahead of its first waiter.
    pub(crate) fn send_presence(&mut self, member: MemberIndex) {
        let (now, state) = (self.now.instant, &mut self.members[member]);
        let is_recent = |last: BootInstant| now.since(last) < HEARTBEAT_EVERY;
        if state.connected.is_some() && !state.heartbeat.is_some_and(is_recent) {
            state.heartbeat = Some(now);
            let (task, request) = (Task::Heartbeat(Vec::new()), Request::Heartbeat(Vec::new()));
            self.send(member, task, request, HEARTBEAT_EVERY);
        }
    }

    /// Returns until when a round goes on that has reached its end, if one of the members that owe it an answer is at
    /// work.
    pub(crate) fn round_goes_on(
        &self,
        owing: impl Iterator<Item = MemberIndex>,
    ) -> Option<BootInstant> {
        let ends = owing.filter_map(|member| self.members[member].works_until());
        ends.max().filter(|end| *end > self.now.instant)
    }

    /// Whether a release can be sent to the member now.
    pub(crate) fn takes_release(&self, member: MemberIndex) -> bool {
        let is_silent = !self.membership.is_reachable(member);
        self.members[member].takes_release(is_silent)
    }

    /// Takes a request that was not sent, because its member is not connected.
    pub(crate) fn pop_unsent(&mut self) -> Option<(MemberIndex, Task)> {
        self.unsent.pop_front()
    }

    pub(crate) fn pop_transmit(&mut self) -> Option<(Members, RequestId, Request)> {
        self.transmits.pop_front()
    }

    /// Forgets what the driver has not sent to a member whose connection broke.
    pub(crate) fn drop_transmits(&mut self, member: MemberIndex) {
        self.transmits.retain_mut(|(to, ..)| {
            to.remove(member);
            !to.is_empty()
        });
    }

    pub(crate) fn has_no_output(&self) -> bool {
        self.transmits.is_empty()
    }

    pub(crate) fn pop_event(&mut self) -> Option<(OperationId, Event)> {
        self.events.pop_front()
    }

    pub(crate) fn progress(&mut self, id: OperationId, progress: Progress) {
        self.events.push_back((id, Event::Progress(progress)));
    }

    pub(crate) fn finish(&mut self, id: OperationId, outcome: Outcome) {
        self.events.push_back((id, Event::Done(outcome)));
    }

    /// Forgets the events of an operation that was cancelled.
    pub(crate) fn drop_events(&mut self, id: OperationId) {
        self.events.retain(|(it, _)| *it != id);
    }

    /// Sets a timer that was set to `known`, and notes there when it is due.
    pub(crate) fn set_timer(
        &mut self,
        timer: Timer,
        known: &mut Option<BootInstant>,
        due: Option<BootInstant>,
    ) {
        if *known == due {
            return;
        }
        if let Some(old) = known {
            self.timers.remove(&(*old, timer));
        }
        if let Some(due) = due {
            self.timers.insert((due, timer));
        }
        *known = due;
    }

    /// Takes a timer that is due.
    pub(crate) fn pop_timer(&mut self) -> Option<Timer> {
        let (at, timer) = *self.timers.first()?;
        if at > self.now.instant {
            return None;
        }
        self.timers.pop_first();
        Some(timer)
    }

    /// Returns when the engine has to look again.
    pub(crate) fn next_timeout(&self) -> Option<BootInstant> {
        let members = self.members.iter().filter_map(Member::next_timeout);
        let others = [
            self.membership.next_timeout(),
            self.timers.first().map(|(at, _)| *at),
            self.heartbeat.next(),
            self.admission.next_timeout(),
            self.resume_at,
        ];
        members.chain(others.into_iter().flatten()).min()
    }

    /// How long one member may take to answer a request about a lease of this TTL.
    pub(crate) fn limit_of(&self, ttl: Duration) -> Duration {
        if self.members.len() == 1 {
            LockRequest::limit_of(ttl)
        } else {
            (ttl / 20).clamp(Duration::from_millis(50), Duration::from_secs(1))
        }
    }

    /// A round asks for the lock. Returns whether the lock was granted before, and whether the round has to set the
    /// expiry of its counters.
    pub(crate) fn use_lock(&mut self, key: &Key) -> (bool, bool) {
        let known = self.known_locks.get(key);
        let expire = self.sets_expiry(key, known);
        (known.is_some_and(|known| known.is_granted), expire)
    }

    /// Whether a round that begins now has to set the expiry of its counters.
    pub(crate) fn sets_expiry(&mut self, key: &Key, known: Option<KnownLock>) -> bool {
        let now = self.now.instant;
        let expire = known.is_none_or(|known| known.expiry_is_due(now));
        if expire {
            self.known_locks.set_expiry(key, now);
        }
        expire
    }

    /// Whether no client is known to wait for the lock.
    pub(crate) fn has_no_known_waiters(&self, key: &Key) -> bool {
        let was_busy = self.waiters.was_busy(key, self.now.instant, HOT_PAUSE);
        !was_busy && self.waiters.of(key).next().is_none()
    }

    /// Notes the acquisition of a request. Returns the earlier one of the same owner.
    pub(crate) fn know_owner(
        &mut self,
        lock_request: &LockRequest,
        id: OperationId,
    ) -> Option<OperationId> {
        let (owner, first) = (lock_request.owner, lock_request.first_owner());
        if owner != first {
            self.first_owners.insert(first, id);
        }
        self.owners.insert(owner, id)
    }

    /// Returns the acquisition of a request, which may be in a later round.
    pub(crate) fn acquisition_of(&self, owner: &Owner) -> Option<OperationId> {
        let known = self.owners.get(owner);
        known.or_else(|| self.first_owners.get(owner)).copied()
    }

    /// The acquisition is over: the owner of its request no longer leads to it.
    pub(crate) fn forget_owner(&mut self, lock_request: &LockRequest, id: OperationId) {
        let (owner, first) = (lock_request.owner, lock_request.first_owner());
        if self.owners.get(&owner) == Some(&id) {
            self.owners.remove(&owner);
        }
        if owner != first && self.first_owners.get(&first) == Some(&id) {
            self.first_owners.remove(&first);
        }
    }

    /// Returns whether an operation that began at `began` may ask the member. After `end` it waits for no status.
    pub(crate) fn reach(
        &mut self,
        member: MemberIndex,
        began: BootInstant,
        end: BootInstant,
    ) -> Reach {
        let now = self.now.instant;
        match self.membership.access(now, member, began) {
            Access::Open => Reach::Open,
            Access::Pending if now < end => Reach::Later,
            Access::Pending | Access::Closed => {
                Reach::Closed(self.membership.obstacle(now, member))
            }
        }
    }

    /// Whether a majority of members may be asked for locks and would have a vote.
    pub(crate) fn has_majority(&mut self, began: BootInstant) -> bool {
        let now = self.now.instant;
        let membership = &mut self.membership;
        let mut has_vote = |member: &MemberIndex| {
            membership.access(now, *member, began) == Access::Open
                && membership.lacks_vote(now, *member).is_none()
        };
        self.members.keys().filter(|it| has_vote(it)).count() >= majority(self.members.len())
    }

    /// Returns why no majority has a vote: `failed` may not be asked or have no vote, and the status of `pending` members is
    /// not known yet.
    pub(crate) fn outage(&mut self, failed: Members, pending: usize) -> &Outage {
        let (now, total) = (self.now.instant, self.members.len());
        let membership = &mut self.membership;
        let why = |member| match membership.is_open(member) {
            true => membership.lacks_vote(now, member),
            false => membership.obstacle(now, member),
        };
        let known = self.outage.take();
        let outage = Outage::of(known, now, (failed, pending), || {
            too_few(total, pending, failed.iter().filter_map(why).collect()).without_effect()
        });
        self.outage.insert(outage)
    }

    /// Returns whether an operation may begin at once. Otherwise it waits for its turn.
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        let window = self.admission.window();
        let is_free = |it: &Member| it.in_flight() < window;
        self.admission.is_empty() && (self.members.iter().all(is_free) || self.takes_more())
    }

    /// Returns whether further operations may ask: all members that are at work have room for requests, and they are a
    /// majority. Without a majority they ask nothing, and learn why.
    pub(crate) fn takes_more(&mut self) -> bool {
        let (now, total) = (self.now.instant, self.members.len());
        let window = self.admission.window();
        let is_at_work = |it: &Member| it.works_until().is_some_and(|until| until > now);
        let full = || self.members.iter().filter(|it| it.in_flight() >= window);
        let has_room = total - full().count() >= majority(total) && !full().any(is_at_work);
        has_room || !self.has_majority(now)
    }

    /// Lets the acquisitions without a majority look again at `at`.
    pub(crate) fn resume_by(&mut self, at: BootInstant) {
        self.resume_at = Some(self.resume_at.map_or(at, |known| known.min(at)));
    }

    /// Returns whether the acquisitions without a majority look again now.
    pub(crate) fn take_resume(&mut self) -> bool {
        let now = self.now.instant;
        self.resume_at.take_if(|at| *at <= now).is_some()
    }

    /// The round trip to the slowest member of the fastest majority.
    pub(crate) fn round_trip(&self) -> Duration {
        let known = || self.members.iter().filter_map(Member::round_trip);
        let is_majority = |slowest: &Duration| {
            known().filter(|it| it <= slowest).count() >= majority(self.members.len())
        };
        let slowest = known().filter(is_majority).min();
        slowest.unwrap_or(Duration::from_millis(50))
    }

    /// Returns a random part of a span, from a tenth of it on.
    pub(crate) fn random_part(&self, span: Duration) -> Duration {
        let random = self.entropy.next_u64() as f64 / u64::MAX as f64;
        span.mul_f64(0.1 + 0.9 * random)
    }
}
