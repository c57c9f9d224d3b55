use std::sync::Arc;

use leasehold::store::{
    Exclusion, Expiry, Guarantees, LeaseTerms, Order, Session, SessionContext, Store,
};

use super::RedisStore;
use super::session::RedisSession;

impl Store for RedisStore {
    fn locations(&self) -> Vec<String> {
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

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        Arc::new(RedisSession::new(self.clone(), context))
    }
}
