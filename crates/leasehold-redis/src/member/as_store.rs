use leasehold::{
    Admin, Attempt, BoxFuture, Breaking, Claim, Counting, Departure, Error, Exclusion, Expiry,
    Fencing, Guarantees, Held, Inspection, LeaseTerms, Member, Order, Records, Release, Renewal,
    Sharing, Store, Waiting,
};

use super::RedisMember;
use crate::attempt;

impl Store for RedisMember {
    fn describe(&self) -> String {
        format!("Redis {}", self.connector.url().room())
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::new(
            Exclusion::OneServer,
            Fencing::CounterThenClock,
            Expiry::Lease,
            Waiting::Notified,
            Order::Fifo,
            Sharing::WritersPreferred,
        )
        .with_counting(Counting::Permits)
        .with_breaking(Breaking::Exclusive)
    }

    fn terms(&self) -> LeaseTerms {
        LeaseTerms::single()
    }

    fn acquire<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Attempt, Error>> {
        Box::pin(async {
            self.try_acquire(claim)
                .await
                .map_err(|error| self.named(error))
        })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<Renewal>> {
        Box::pin(async {
            if leases.is_empty() {
                return Vec::new();
            }
            match self.renew_sampled(leases).await {
                Ok(sampled) => sampled.answer,
                Err(error) => vec![Renewal::Unknown(error); leases.len()],
            }
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Release, Error>> {
        self.depart(claim, &Departure::HandOver)
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        // A release is over when it is answered.
        Box::pin(std::future::ready(()))
    }

    fn wait<'a>(&'a self, _claim: &'a Claim) -> BoxFuture<'a, ()> {
        Box::pin(self.ambient.poll_pause())
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

impl RedisMember {
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt, Error> {
        let records = self.records_of(&claim.key);
        let link = self.link().await?;
        attempt::acquire(&link, &records, claim, self.ambient.clock.now()).await
    }
}
