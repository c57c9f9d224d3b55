use leasehold::{
    Attempt, BoxFuture, Breaking, Claim, Counting, Departure, Error, Exclusion, Expiry, Fencing,
    Guarantees, Held, Holder, Key, LeaseTerms, Member, Order, Records, Release, Renewal, Sharing,
    Store, Waiter, Waiting,
};

use super::RedisMember;
use crate::{attempt, look, scan};

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

    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        Box::pin(async {
            self.try_holders(key)
                .await
                .map_err(|error| self.named(error))
        })
    }

    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        Box::pin(async {
            self.try_waiters(key)
                .await
                .map_err(|error| self.named(error))
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        Box::pin(async move {
            let listed = self.try_list(prefix, limit).await;
            listed.map_err(|error| self.named(error))
        })
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

    async fn try_holders(&self, key: &Key) -> Result<Vec<Holder>, Error> {
        let link = self.link().await?;
        look::holders(&link, &self.records_of(key)).await
    }

    async fn try_waiters(&self, key: &Key) -> Result<Vec<Waiter>, Error> {
        let link = self.link().await?;
        look::waiters(&link, &self.records_of(key)).await
    }

    async fn try_list(&self, prefix: &str, limit: usize) -> Result<Vec<Key>, Error> {
        let link = self.link().await?;
        scan::list(&link, &self.connector.url().prefix, prefix, limit).await
    }
}
