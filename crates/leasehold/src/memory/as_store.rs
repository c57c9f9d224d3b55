use super::MemoryStore;
use crate::BoxFuture;
use crate::admin::Admin;
use crate::attempt::{Attempt, Release, Renewal};
use crate::claim::{Claim, Held};
use crate::error::Error;
use crate::guarantees::{
    Breaking, Counting, Exclusion, Expiry, Fencing, Guarantees, LeaseTerms, Order, Sharing, Waiting,
};
use crate::inspection::Inspection;
use crate::queue::Departure;
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
