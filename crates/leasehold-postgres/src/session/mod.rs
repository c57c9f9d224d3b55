//! The locks of one client.

mod acquire;
pub(crate) mod link;
mod places;
pub(crate) mod requests;
pub(crate) mod waits;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::Error;
use leasehold::clock::BootInstant;
use leasehold::look::Owner;
use leasehold::store::{
    AcquireError, Admin, BoxFuture, Grant, Held, Inspection, LockRequest, PerRuntime, Progress,
    Records, ReleaseReply, RenewReply, Session, SessionContext, locked,
};

use crate::connection::connect::Place;
use link::{Inbox, Link, Slot};
use requests::{RELEASE, RENEW, column, micros, mode_number, released, renewal, unexpected};
use waits::{HandOver, News, Waits};

#[derive(Clone, Debug)]
pub(crate) struct PostgresSession(Arc<PostgresInner>);

#[derive(Debug)]
struct PostgresInner {
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
}

impl PostgresSession {
    pub(crate) fn new(place: &Arc<Place>, context: SessionContext) -> Self {
        let waits = Arc::new(Waits::new());
        let channel = format!("leasehold_{}", context.client().id);
        let inbox = Inbox(channel, Arc::clone(&waits));
        let slot = |inbox| Slot::new(Arc::clone(place), context.clone(), inbox, None);
        Self(Arc::new(PostgresInner {
            attempts: PerRuntime::new(slot(Some(inbox.clone())), &context),
            place: Arc::clone(place),
            inbox,
            leases: slot(None),
            spare: Mutex::default(),
            waits,
            settled: Mutex::default(),
            context,
        }))
    }

    /// The connection for attempts that the runtime of the caller drives.
    async fn attempts(&self) -> Arc<Slot> {
        let open = |runtime| {
            let (place, context) = (Arc::clone(&self.0.place), self.0.context.clone());
            Slot::new(place, context, Some(self.0.inbox.clone()), Some(runtime))
        };
        self.0.attempts.here(open, Slot::is_open).await
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

    async fn release_on(
        &self,
        slot: &Arc<Slot>,
        request: &LockRequest,
        is_settled: bool,
    ) -> Result<ReleaseReply, Error> {
        let (key, owner) = (request.key.as_str(), request.owner.to_string());
        let client = self.0.context.client().id.to_string();
        let since = self.now();
        let asking = slot.ask(request.limit(), async |link| {
            let statement = &link.statements[RELEASE];
            link.client
                .query_one(statement, &[&key, &owner, &client, &is_settled])
                .await
        });
        let (reply, grants) = released(column(&asking.await?, 0)?)?;
        for (owner, fence) in grants {
            let grant = HandOver { fence, since };
            self.0.waits.tell(owner, News::Granted(grant));
        }
        Ok(reply)
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
            let attempts = self.attempts().await;
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
        Box::pin(async move {
            let is_ours = request.owner.client() == self.0.context.client().id;
            if is_ours && !self.0.place.was_reached() {
                // Nothing was sent.
                return Ok(ReleaseReply::WasLost);
            }
            // Once only: if this release is lost, the next one must assume the worst.
            let is_settled = locked(&self.0.settled).remove(&request.owner);
            let here = self.attempts().await;
            // The caller drives this connection, so the usual release wakes no other thread.
            let slot = match is_settled && here.is_open() {
                true => here,
                false => self.leases(request.limit()).await,
            };
            let releasing = self.release_on(&slot, request, is_settled);
            self.0.context.in_runtime(releasing).await
        })
    }

    fn detach(&self, request: &Arc<LockRequest>) {
        locked(&self.0.settled).remove(&request.owner);
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
