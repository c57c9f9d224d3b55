use std::future::ready;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use leasehold::Error;
use leasehold::store::{
    Admin, Attempt, BoxFuture, Claim, Health, Held, Inspection, Records, Release, Renewal, Session,
    SessionContext, Wait,
};
use leasehold::telemetry::{HandOvers, MemberGauges};
use leasehold_quorum::{Acquired, Outcome, ReleaseMode};

use super::RedisStore;
use super::errors::unexpected;
use super::wait_queue::{WaitQueue, attempt, told};
use crate::driver::{Driver, DriverConfig};

/// The locks of one client. The first request opens the connections, and they close with the session.
#[derive(Debug)]
pub(super) struct RedisSession {
    pub(super) store: RedisStore,
    pub(super) context: SessionContext,
    driver: OnceLock<Driver>,
    /// Locked while the driver is opened. The metric of the members' states, until the driver has it.
    gauges: Mutex<Option<MemberGauges>>,
    pub(super) hand_overs: HandOvers,
    pub(super) waits: WaitQueue,
}

impl RedisSession {
    pub(super) fn new(store: RedisStore, context: SessionContext) -> Self {
        let name = store.to_string();
        Self {
            gauges: Mutex::new(Some(MemberGauges::new(&name, store.members.len()))),
            hand_overs: HandOvers::new(&name),
            store,
            context,
            driver: OnceLock::new(),
            waits: WaitQueue::default(),
        }
    }

    /// Returns the connections, which the first call opens.
    pub(super) fn driver(&self) -> Result<&Driver, Error> {
        if let Some(driver) = self.driver.get() {
            return Ok(driver);
        }
        let mut gauges = self.gauges.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(driver) = self.driver.get() {
            return Ok(driver);
        }
        let store = &self.store;
        let driver = Driver::open(DriverConfig {
            gauges: gauges.take(),
            urls: store.urls.clone(),
            max_ttl: store.set.max_ttl,
            clock_tolerance: store.set.clock_tolerance,
            enforced: store.enforced,
            read_only: store.read_only,
            client: Arc::clone(self.context.client()),
            env: self.context.env().clone(),
        })?;
        Ok(self.driver.get_or_init(|| driver))
    }

    /// Returns the connections if a request opened them.
    fn opened(&self) -> Option<&Driver> {
        self.driver.get()
    }
}

impl Session for RedisSession {
    fn acquire<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Attempt, Error>> {
        Box::pin(async move {
            let in_order = |error| self.store.in_order(error);
            let event = match self.waits.get(claim.owner) {
                Some(wait) => {
                    let clock = &*self.context.env().clock;
                    // Before the caller gives up.
                    let end = clock.now() + claim.limit() / 2;
                    let event = wait.attempt(clock, end).await;
                    if event.is_ok() {
                        self.waits.end(claim.owner);
                    }
                    event
                }
                None => {
                    let mut call = self.driver()?.acquire(Arc::new(claim.clone()));
                    if !matches!(claim.wait, Wait::Queued) {
                        return attempt(call.await).map_err(in_order);
                    }
                    let event = call.event().await;
                    if let Err(progress) = &event {
                        self.waits.begin(claim.owner, call, progress.clone());
                    }
                    event
                }
            };
            match event {
                Ok(outcome) => {
                    if let Outcome::Acquired(Acquired {
                        notified_at: Some(notified_at),
                        ..
                    }) = &outcome
                    {
                        let took = self.context.env().clock.now().since(*notified_at);
                        self.hand_overs.took(took);
                    }
                    attempt(outcome).map_err(in_order)
                }
                Err(progress) => told(progress).map_err(in_order),
            }
        })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<Renewal>> {
        Box::pin(async move {
            let failed = |error: Error| vec![Renewal::Unknown(error); leases.len()];
            let driver = match self.driver() {
                Ok(driver) => driver,
                Err(error) => return failed(error),
            };
            match driver.renew(leases.to_vec()).await {
                Outcome::Renewed(renewals) => {
                    let in_order = |renewal| match renewal {
                        Renewal::Unknown(error) => Renewal::Unknown(self.store.in_order(error)),
                        renewal => renewal,
                    };
                    renewals.into_iter().map(in_order).collect()
                }
                Outcome::Failed(error) => failed(self.store.in_order(error)),
                _ => failed(unexpected()),
            }
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Release, Error>> {
        Box::pin(async move {
            self.waits.end(claim.owner);
            let release = self
                .driver()?
                .release(Arc::new(claim.clone()), ReleaseMode::HandOver);
            match release.await {
                Outcome::Released(release) => Ok(release),
                Outcome::Failed(error) => Err(self.store.in_order(error)),
                _ => Err(unexpected()),
            }
        })
    }

    fn detach(&self, claim: &Claim) {
        if let Some(driver) = self.opened() {
            drop(driver.release(Arc::new(claim.clone()), ReleaseMode::Detach));
        }
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(driver) = self.opened() {
                driver.flush().await;
            }
        })
    }

    fn wait<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, ()> {
        match self.waits.get(claim.owner) {
            Some(wait) => Box::pin(async move { wait.changed().await }),
            None if matches!(claim.wait, Wait::Queued) => Box::pin(ready(())),
            None => Box::pin(self.context.env().poll_pause()),
        }
    }

    fn leave(&self, claim: &Claim) {
        self.waits.end(claim.owner);
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
