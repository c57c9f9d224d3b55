use std::sync::{Arc, Mutex, OnceLock};

use leasehold::look::Owner;
use leasehold::store::{
    AcquireError, Admin, BoxFuture, Grant, Health, Held, Inspection, LockRequest, Progress,
    Records, ReleaseReply, RenewReply, Session, SessionContext, locked,
};
use leasehold::telemetry::{HandOvers, MemberGauges};
use leasehold::{Effect, Error};
use leasehold_quorum::{Event, Operation, Outcome, ReleaseMode};

use super::RedisStore;
use super::errors::unexpected;
use crate::admin::{Server, Servers};
use crate::driver::{Driver, DriverConfig};

/// The locks of one client. The first request opens the connections, and they close with the session.
#[derive(Debug)]
pub(super) struct RedisSession {
    pub(super) store: RedisStore,
    pub(super) context: SessionContext,
    opened: OnceLock<Opened>,
    /// Locked while the connections are opened. The metric of the members' states, until the driver has it.
    gauges: Mutex<Option<MemberGauges>>,
    pub(super) hand_overs: HandOvers,
}

/// The connections of a client.
#[derive(Debug)]
struct Opened {
    driver: Arc<Driver>,
    /// The members, in the order of the store.
    servers: Vec<Server>,
}

impl RedisSession {
    pub(super) fn new(store: RedisStore, context: SessionContext) -> Self {
        let name = store.to_string();
        Self {
            gauges: Mutex::new(Some(MemberGauges::new(&name, store.members.len()))),
            hand_overs: HandOvers::new(&name),
            store,
            context,
            opened: OnceLock::new(),
        }
    }

    /// Returns the connections, which the first call opens.
    pub(super) fn driver(&self) -> Result<&Driver, Error> {
        if let Some(driver) = self.opened() {
            return Ok(driver);
        }
        let mut gauges = locked(&self.gauges);
        if let Some(driver) = self.opened() {
            return Ok(driver);
        }
        let store = &self.store;
        let config = DriverConfig {
            gauges: gauges.take(),
            urls: store.urls().collect(),
            max_ttl: store.set.max_ttl,
            clock_tolerance: store.set.clock_tolerance,
            enforced: store.enforced,
            read_only: store.read_only,
        };
        let driver = Arc::new(Driver::open(config, &self.context));
        let servers = Servers::on(&driver, store.servers());
        let opened = Opened { driver, servers };
        Ok(&self.opened.get_or_init(|| opened).driver)
    }

    /// Takes the lock, or waits for it in the queues of the members. The engine goes on through an outage. If the future
    /// is dropped, the engine gives back what it has.
    async fn ask(
        &self,
        request: &Arc<LockRequest>,
        progress: &Progress<'_>,
    ) -> Result<Grant, AcquireError> {
        let acquire = Operation::Acquire(Arc::clone(request));
        let mut call = self.driver()?.start(acquire);
        loop {
            match call.event().await {
                Event::Progress(leasehold_quorum::Progress::Busy(busy)) => progress.busy(busy),
                Event::Progress(leasehold_quorum::Progress::Unavailable(error)) => {
                    debug_assert_ne!(error.effect(), Effect::Unknown);
                    progress.unavailable(self.store.in_order(error));
                }
                Event::Done(Outcome::Acquired(acquired)) => {
                    if let Some(notified_at) = acquired.notified_at {
                        let took = self.context.env().clock.now().since(notified_at);
                        self.hand_overs.took(took);
                    }
                    return Ok(Grant::new(acquired.fence, acquired.term).owned_by(acquired.owner));
                }
                Event::Done(Outcome::Busy(busy)) => return Err(AcquireError::Busy(busy)),
                Event::Done(Outcome::Failed(error)) => {
                    return Err(self.store.in_order(error).into());
                }
                Event::Done(_) => return Err(unexpected().into()),
            }
        }
    }

    /// Waits outside of the queues. A refused attempt may still be given back, so the next one has another owner.
    async fn poll(
        &self,
        request: &Arc<LockRequest>,
        progress: &Progress<'_>,
    ) -> Result<Grant, AcquireError> {
        let env = self.context.env();
        let mut next = Arc::clone(request);
        loop {
            match self.ask(&next, progress).await {
                Ok(grant) => return Ok(grant),
                Err(AcquireError::Busy(busy)) => progress.busy(busy),
                Err(failed) => return Err(failed),
            }
            self.context.in_runtime(env.poll_pause()).await;
            let owner = Owner::at(request.owner.client(), env.clock.wall(), &*env.entropy);
            next = Arc::new(LockRequest::clone(request).with_owner(owner));
        }
    }

    /// Returns the connections if a request opened them.
    fn opened(&self) -> Option<&Driver> {
        Some(&self.opened.get()?.driver)
    }

    /// Returns the members, in the order of the store. A client that only looks does not become one of their clients.
    pub(super) fn servers(&self) -> Vec<&Server> {
        match self.opened.get() {
            Some(opened) => opened.servers.iter().collect(),
            None => self.store.servers().collect(),
        }
    }
}

impl Session for RedisSession {
    fn acquire<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        Box::pin(async move {
            match request.waits && !request.is_queued() {
                true => self.poll(request, progress).await,
                false => self.ask(request, progress).await,
            }
        })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<RenewReply>> {
        Box::pin(async move {
            let failed = |error: Error| vec![RenewReply::Unknown(error); leases.len()];
            let driver = match self.driver() {
                Ok(driver) => driver,
                Err(error) => return failed(error),
            };
            match driver.start(Operation::Renew(leases.to_vec())).await {
                Outcome::Renewed(renewals) => {
                    let in_order = |renewal| match renewal {
                        RenewReply::Unknown(error) => {
                            RenewReply::Unknown(self.store.in_order(error))
                        }
                        renewal => renewal,
                    };
                    renewals.into_iter().map(in_order).collect()
                }
                Outcome::Failed(error) => failed(self.store.in_order(error)),
                _ => failed(unexpected()),
            }
        })
    }

    fn release<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
    ) -> BoxFuture<'a, Result<ReleaseReply, Error>> {
        Box::pin(async move {
            let release = Operation::Release(Arc::clone(request), ReleaseMode::HandOver);
            match self.driver()?.start(release).await {
                Outcome::Released(release) => Ok(release),
                Outcome::Failed(error) => Err(self.store.in_order(error)),
                _ => Err(unexpected()),
            }
        })
    }

    fn detach(&self, request: &Arc<LockRequest>) {
        if let Some(driver) = self.opened() {
            let detach = Operation::Release(Arc::clone(request), ReleaseMode::Detach);
            drop(driver.start(detach));
        }
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(driver) = self.opened() {
                driver.flush().await;
            }
        })
    }

    fn unconfirmed_releases(&self) -> Option<usize> {
        Some(self.opened().map_or(0, Driver::unconfirmed_releases))
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

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }
}
