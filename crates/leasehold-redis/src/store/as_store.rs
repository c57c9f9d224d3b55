use std::future::ready;
use std::sync::Arc;

use leasehold::store::{
    Admin, Attempt, BoxFuture, Claim, ClientId, Exclusion, Expiry, Health, Held, Inspection,
    LeaseTerms, Order, Records, Release, Renewal, Store, Wait,
};
use leasehold::{Error, Guarantees};
use leasehold_quorum::{Acquired, Outcome, ReleaseMode};

use super::RedisStore;
use super::errors::unexpected;
use super::wait_queue::{attempt, told};

impl Store for RedisStore {
    fn places(&self) -> Vec<String> {
        self.members.iter().map(ToString::to_string).collect()
    }

    fn guarantees(&self) -> Guarantees {
        let exclusion = match (self.members.len(), self.enforced) {
            (1, _) => Exclusion::OneServer,
            (_, false) => Exclusion::EveryMember,
            (_, true) => Exclusion::Majority,
        };
        Guarantees::new(exclusion, Expiry::Lease, Order::Fifo)
            .with_shared()
            .with_permits()
    }

    fn terms(&self) -> LeaseTerms {
        match self.members.len() {
            // It continues right after a restart, so no lease has to be waited for.
            1 if !self.enforced => LeaseTerms::single(),
            // The engine also checks the limits that the members state.
            _ => LeaseTerms::single().with_ttl_max(Self::MAX_TTL_MAX),
        }
    }

    fn acquire<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Attempt, Error>> {
        Box::pin(async move {
            let session = self.session(&claim.client)?;
            let in_order = |error| self.in_order(error);
            let event = match session.waits.get(claim.owner) {
                Some(wait) => {
                    let clock = &*self.env.clock;
                    // Before the caller gives up.
                    let end = clock.now() + claim.limit() / 2;
                    let event = wait.attempt(clock, end).await;
                    if event.is_ok() {
                        session.waits.end(claim.owner);
                    }
                    event
                }
                None => {
                    let mut call = session.driver.acquire(Arc::new(claim.clone()));
                    if !matches!(claim.wait, Wait::Queued) {
                        return attempt(call.await).map_err(in_order);
                    }
                    let event = call.event().await;
                    if let Err(progress) = &event {
                        session.waits.begin(claim.owner, call, progress.clone());
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
                        let took = self.env.clock.now().since(*notified_at);
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
            let Some(first) = leases.first() else {
                return Vec::new();
            };
            let failed = |error: Error| vec![Renewal::Unknown(error); leases.len()];
            match self.session(&first.claim.client) {
                Err(error) => failed(error),
                Ok(session) => match session.driver.renew(leases.to_vec()).await {
                    Outcome::Renewed(renewals) => {
                        let in_order = |renewal| match renewal {
                            Renewal::Unknown(error) => Renewal::Unknown(self.in_order(error)),
                            renewal => renewal,
                        };
                        renewals.into_iter().map(in_order).collect()
                    }
                    Outcome::Failed(error) => failed(self.in_order(error)),
                    _ => failed(unexpected()),
                },
            }
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Release, Error>> {
        Box::pin(async move {
            let session = self.session(&claim.client)?;
            session.waits.end(claim.owner);
            let release = session
                .driver
                .release(Arc::new(claim.clone()), ReleaseMode::HandOver);
            match release.await {
                Outcome::Released(release) => Ok(release),
                Outcome::Failed(error) => Err(self.in_order(error)),
                _ => Err(unexpected()),
            }
        })
    }

    fn detach(&self, claim: &Claim) {
        if let Ok(session) = self.session(&claim.client) {
            let claim = Arc::new(claim.clone());
            drop(session.driver.release(claim, ReleaseMode::Detach));
        }
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            for session in self.sessions() {
                session.driver.flush().await;
            }
        })
    }

    fn wait<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, ()> {
        let session = self.session(&claim.client).ok();
        match session.and_then(|session| session.waits.get(claim.owner)) {
            Some(wait) => Box::pin(async move { wait.changed().await }),
            None if matches!(claim.wait, Wait::Queued) => Box::pin(ready(())),
            None => Box::pin(self.env.poll_pause()),
        }
    }

    fn leave(&self, claim: &Claim) {
        if let Ok(session) = self.session(&claim.client) {
            session.waits.end(claim.owner);
        }
    }

    fn end_client(&self, client: ClientId) {
        self.end_session(client);
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
