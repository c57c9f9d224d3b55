//! The locks of one client.

pub(crate) mod link;
pub(crate) mod requests;
pub(crate) mod waits;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::clock::{BootInstant, WallTime, within};
use leasehold::store::{
    AcquireError, Admin, BoxFuture, Busy, Grant, Held, Inspection, LockRequest, Owner, PerRuntime,
    Progress, Records, ReleaseReply, RenewReply, Session, SessionContext, Term, locked,
};
use leasehold::{Effect, Error};
use tokio_util::task::TaskTracker;

use crate::client_text;
use crate::connection::connect::Place;
use crate::connection::failure;
use link::{Inbox, Link, Slot};
use requests::{
    ACQUIRE, Answer, RELEASE, RENEW, answer, column, micros, mode_number, released, renewal,
    unexpected,
};
use waits::{HandOver, Wait, Waits};

#[derive(Clone, Debug)]
pub(crate) struct PostgresSession(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    context: SessionContext,
    /// For attempts, which may wait for a row, for notifications, and for the first try of a release.
    attempts: PerRuntime<Slot>,
    place: Arc<Place>,
    inbox: Inbox,
    /// For all the rest: nothing on it waits for long.
    leases: Arc<Slot>,
    /// The connection of attempts that does the work of `leases` while the server has no room for that one.
    spare: Mutex<Option<Arc<Slot>>>,
    waits: Arc<Waits>,
    /// The owners that hold, and all of whose requests were answered: nothing of them can arrive late.
    settled: Mutex<HashSet<Owner>>,
    releases: TaskTracker,
}

/// How often a waiter asks without news. The server keeps its place for four times as long.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The shortest time until a waiter asks when a lease is about to end.
const ASK_SOON: Duration = Duration::from_millis(20);

impl PostgresSession {
    pub(crate) fn new(place: &Arc<Place>, context: SessionContext) -> Self {
        let waits = Arc::new(Waits::default());
        let channel = format!("leasehold_{}", context.client().id);
        let inbox = Inbox(channel, Arc::clone(&waits));
        let slot = |inbox| Slot::new(Arc::clone(place), context.clone(), inbox, None);
        let releases = TaskTracker::new();
        releases.close();
        Self(Arc::new(Inner {
            attempts: PerRuntime::new(slot(Some(inbox.clone()))),
            place: Arc::clone(place),
            inbox,
            leases: slot(None),
            spare: Mutex::default(),
            waits,
            settled: Mutex::default(),
            releases,
            context,
        }))
    }

    /// The connection for attempts that the runtime of the caller drives.
    fn attempts(&self) -> Arc<Slot> {
        let open = |runtime| {
            let (place, context) = (Arc::clone(&self.0.place), self.0.context.clone());
            Slot::new(place, context, Some(self.0.inbox.clone()), Some(runtime))
        };
        self.0.attempts.here(open, Slot::is_open)
    }

    /// The schema with the tables.
    pub(crate) fn schema(&self) -> &str {
        &self.0.place.settings.schema
    }

    /// Asks for something that does not wait for a lock.
    pub(crate) async fn ask<T>(
        &self,
        limit: Duration,
        work: impl AsyncFnOnce(&Link) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Error> {
        self.leases(limit).await.ask(limit, work).await
    }

    async fn leases(&self, limit: Duration) -> Arc<Slot> {
        let leases = &self.0.leases;
        if !leases.is_open() {
            let spare = locked(&self.0.spare).clone();
            if let Some(spare) = spare.filter(|spare| spare.is_open()) {
                if !leases.opens_within(limit / 2).await {
                    return spare;
                }
                *locked(&self.0.spare) = None;
            }
        }
        Arc::clone(leases)
    }

    /// Makes sure that a lease can be renewed, before anybody relies on it. If the server has no room for one more connection,
    /// that of the attempts renews, too.
    async fn prepare_renewals(&self, attempts: &Arc<Slot>, request: &LockRequest) {
        let limit = request.limit().min(LockRequest::LIMIT_MAX) / 4;
        let is_prepared = self.0.leases.is_open()
            || locked(&self.0.spare)
                .as_ref()
                .is_some_and(|spare| Arc::ptr_eq(spare, attempts));
        if !is_prepared && !self.0.leases.opens_within(limit).await {
            *locked(&self.0.spare) = Some(Arc::clone(attempts));
        }
    }

    /// Asks for the lock until it is granted, unless the request does not wait. The place in the queue is that of the
    /// owner, so it stays through an outage of a few seconds.
    async fn acquire_in_turn(
        &self,
        attempts: &Arc<Slot>,
        request: &LockRequest,
        progress: &Progress<'_>,
    ) -> Result<Grant, AcquireError> {
        let client = client_text::client(&request.client)?;
        let wait = request
            .is_queued()
            .then(|| self.0.waits.enter(request.owner));
        let (mut is_settled, mut has_place) = (true, false);
        let mut proposal = request.proposal;
        let granted = loop {
            let since = self.now();
            match self.attempt(attempts, request, &client, proposal).await {
                Ok(Answer::Granted(fence)) => break HandOver { fence, since },
                Ok(Answer::Busy(busy)) if !request.waits => return Err(AcquireError::Busy(busy)),
                Ok(Answer::Busy(busy)) => {
                    has_place |= request.is_queued();
                    progress.busy(busy.clone());
                    self.prepare_renewals(attempts, request).await;
                    let granted = match &wait {
                        Some(wait) => self.pause(request, wait, &busy).await,
                        None => {
                            self.0.context.env().poll_pause().await;
                            None
                        }
                    };
                    if let Some(granted) = granted {
                        break granted;
                    }
                }
                Err(error) => {
                    is_settled &= error.effect() == Effect::None;
                    if !request.waits || !error.is_retryable() {
                        return Err(match is_settled && !has_place {
                            true => error.into(),
                            false => error.with_unknown_effect().into(),
                        });
                    }
                    progress.unavailable(error);
                    self.0.context.env().poll_pause().await;
                }
            }
            proposal = proposal.max(self.0.context.env().clock.wall());
        };
        if is_settled {
            locked(&self.0.settled).insert(request.owner);
        }
        self.prepare_renewals(attempts, request).await;
        let term = Term::new(granted.since, request.ttl);
        Ok(Grant::new(granted.fence, term))
    }

    /// Waits until it may be the turn of the request. Returns the grant, if another guard of this client passed the lock on.
    ///
    /// The session that answered the attempt listens, and its end wakes all waits. So no notification gets lost unnoticed.
    async fn pause(&self, request: &LockRequest, wait: &Wait<'_>, busy: &Busy) -> Option<HandOver> {
        let clock = &*self.0.context.env().clock;
        // A lease ends without a notification. The first waiter takes the lock then, and the others follow.
        let rest = busy.remaining.filter(|_| busy.position == Some(1));
        let rest = rest.unwrap_or(ASK_AGAIN).clamp(ASK_SOON, ASK_AGAIN);
        let news = within(clock, clock.now() + rest, wait.news()).await;
        // If the grant is old, asking renews it.
        news.flatten()
            .filter(|grant| clock.now().since(grant.since) < request.usable_ttl() / 6)
    }

    async fn attempt(
        &self,
        attempts: &Arc<Slot>,
        request: &LockRequest,
        client: &str,
        proposal: WallTime,
    ) -> Result<Answer, Error> {
        let (key, owner) = (request.key.as_str(), request.owner.to_string());
        let (mode, ttl) = (mode_number(request.mode), micros(request.ttl));
        let proposal = i64::try_from(proposal.as_micros()).unwrap_or(i64::MAX);
        let asking = attempts.ask(attempt_limit(request), async |link| {
            let parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)] = &[
                &key,
                &owner,
                &client,
                &mode,
                &ttl,
                &proposal,
                &request.waits,
                &request.barges,
            ];
            let statement = &link.statements[ACQUIRE];
            match link.client.query_one(statement, parameters).await {
                Err(error) if failure::is_row_in_use(&error) => Ok(None),
                answer => answer.map(Some),
            }
        });
        match asking.await? {
            Some(row) => answer(column(&row, 0)?, request),
            None => Ok(Answer::Busy(Busy::default())),
        }
    }

    /// Sends the release until the server answers, or until the lease is over.
    async fn release_in_time(
        &self,
        request: &LockRequest,
        mut is_settled: bool,
    ) -> Result<ReleaseReply, Error> {
        let end = self.now() + request.ttl;
        loop {
            let limit = request.limit();
            let slot = self.leases(limit).await;
            match self.release_once(&slot, request, limit, is_settled).await {
                Ok(reply) => return Ok(reply),
                Err(error) if self.now() > end || !error.is_retryable() => {
                    return Err(error.with_unknown_effect());
                }
                Err(error) => is_settled &= error.effect() == Effect::None,
            }
            self.0.context.env().poll_pause().await;
        }
    }

    async fn release_once(
        &self,
        slot: &Arc<Slot>,
        request: &LockRequest,
        limit: Duration,
        is_settled: bool,
    ) -> Result<ReleaseReply, Error> {
        let (key, owner) = (request.key.as_str(), request.owner.to_string());
        let client = self.0.context.client().id.to_string();
        let since = self.now();
        let asking = slot.ask(limit, async |link| {
            let statement = &link.statements[RELEASE];
            link.client
                .query_one(statement, &[&key, &owner, &client, &is_settled])
                .await
        });
        let (reply, grants) = released(column(&asking.await?, 0)?)?;
        for (owner, fence) in grants {
            let grant = HandOver { fence, since };
            self.0.waits.hand_over(owner, grant);
        }
        Ok(reply)
    }

    /// Releases in the background, whether or not the caller waits for the answer.
    fn spawn_release(
        &self,
        request: Arc<LockRequest>,
        is_settled: bool,
    ) -> BoxFuture<'static, Result<ReleaseReply, Error>> {
        let session = self.clone();
        let release = async move { session.release_in_time(&request, is_settled).await };
        let release = self.0.releases.track_future(release);
        self.0.context.spawn_with_answer(release)
    }

    async fn renew_all(&self, leases: &[Held]) -> Result<Vec<i32>, Error> {
        let requests = leases.iter().map(|held| &*held.request);
        let keys: Vec<&str> = requests.clone().map(|it| it.key.as_str()).collect();
        let owners: Vec<String> = requests.clone().map(|it| it.owner.to_string()).collect();
        let modes: Vec<i32> = requests.clone().map(|it| mode_number(it.mode)).collect();
        let ttls: Vec<i64> = requests.clone().map(|it| micros(it.ttl)).collect();
        // The client waits for as long as the shortest of them may take.
        let limit = requests.map(LockRequest::limit).min();
        let asking = self.ask(limit.unwrap_or_default(), async |link| {
            let statement = &link.statements[RENEW];
            link.client
                .query_one(statement, &[&keys, &owners, &modes, &ttls])
                .await
        });
        let answers: Vec<i32> = column(&asking.await?, 0)?;
        match answers.len() == leases.len() {
            true => Ok(answers),
            false => Err(unexpected("another number of renewals").with_unknown_effect()),
        }
    }

    fn now(&self) -> BootInstant {
        self.0.context.env().clock.now()
    }
}

impl Session for PostgresSession {
    fn acquire<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        Box::pin(async move {
            let attempts = self.attempts();
            let asking = self.acquire_in_turn(&attempts, request, progress);
            self.0.context.in_runtime(asking).await
        })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<RenewReply>> {
        Box::pin(async move {
            let since = self.now();
            match self.renew_all(leases).await {
                Ok(answers) => {
                    let answers = leases.iter().zip(answers);
                    answers
                        .map(|(held, answer)| renewal(held, answer, since))
                        .collect()
                }
                Err(error) => vec![RenewReply::Unknown(error); leases.len()],
            }
        })
    }

    fn release<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
    ) -> BoxFuture<'a, Result<ReleaseReply, Error>> {
        // Once only: if this release is lost, the next one must assume the worst.
        let is_settled = locked(&self.0.settled).remove(&request.owner);
        let mut owed = OwedRelease(Some((self.clone(), Arc::clone(request))));
        Box::pin(async move {
            let here = self.attempts();
            // The caller drives this connection, so the usual release wakes no other thread.
            if is_settled && here.is_open() {
                let trying = self.release_once(&here, request, request.limit(), true);
                if let Ok(reply) = self.0.context.in_runtime(trying).await {
                    owed.is_paid();
                    return Ok(reply);
                }
            }
            owed.is_paid();
            // If a first try failed, it may arrive late, which does no harm.
            self.spawn_release(Arc::clone(request), is_settled).await
        })
    }

    fn detach(&self, request: &Arc<LockRequest>) {
        locked(&self.0.settled).remove(&request.owner);
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.releases.wait())
    }

    fn inspection(&self) -> Option<&dyn Inspection> {
        Some(self)
    }

    fn admin(&self) -> Option<&dyn Admin> {
        Some(self)
    }

    fn records(&self) -> Option<&dyn Records> {
        Some(self)
    }
}

/// How long an attempt may take. The client gives one that does not wait up after [`LockRequest::LIMIT_MAX`].
fn attempt_limit(request: &LockRequest) -> Duration {
    match request.waits {
        true => request.limit(),
        false => request.limit().min(LockRequest::LIMIT_MAX),
    }
}

/// A release that the client's thread makes, if the caller drops it.
struct OwedRelease(Option<(PostgresSession, Arc<LockRequest>)>);

impl OwedRelease {
    fn is_paid(&mut self) {
        self.0 = None;
    }
}

impl Drop for OwedRelease {
    fn drop(&mut self) {
        if let Some((session, request)) = self.0.take() {
            drop(session.spawn_release(request, false));
        }
    }
}
