use super::MemoryStore;
use super::slot::Slot;
use crate::BoxFuture;
use crate::attempt::{Attempt, Release, Renewal};
use crate::claim::{Claim, Held};
use crate::error::Error;
use crate::guarantees::{
    Breaking, Counting, Exclusion, Expiry, Fencing, Guarantees, LeaseTerms, Order, Sharing, Waiting,
};
use crate::holder::Holder;
use crate::key::Key;
use crate::queue::{Departure, Waiter};
use crate::records::Records;
use crate::store::Store;

impl Store for MemoryStore {
    fn describe(&self) -> String {
        self.id.to_string()
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::new(
            Exclusion::Process,
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
        Box::pin(async move { self.attempt(claim, |slot, step| slot.acquire(claim, step)) })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<Renewal>> {
        Box::pin(async move { self.renewals(leases) })
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Release, Error>> {
        Box::pin(async move {
            Ok(self.with_queue(&claim.key, |slot, step| {
                slot.depart(claim, &Departure::HandOver, step)
            }))
        })
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        // A release is over when it is answered.
        Box::pin(std::future::ready(()))
    }

    fn wait<'a>(&'a self, _claim: &'a Claim) -> BoxFuture<'a, ()> {
        Box::pin(self.ambient.poll_pause())
    }

    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        Box::pin(async move {
            Ok(self.with_slot(key, |slot, now| {
                slot.leases.iter().map(|lease| lease.holder(now)).collect()
            }))
        })
    }

    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        Box::pin(async move { Ok(self.with_slot(key, |slot, _| slot.queue.waiters())) })
    }

    fn list<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        Box::pin(async move {
            let now = self.ambient.clock.now();
            let held = |slot: &Slot| slot.leases.iter().any(|lease| now < lease.end);
            let data = self.data();
            let keys = data
                .slots
                .iter()
                .filter(|(key, slot)| key.as_str().starts_with(prefix) && held(slot));
            Ok(keys.map(|(key, _)| key.clone()).take(limit).collect())
        })
    }

    fn records(&self) -> Option<&dyn Records> {
        Some(self)
    }
}
