use std::sync::Arc;
use std::time::Duration;

use super::Acquisition;
use crate::guard::Guard;
use crate::lease::{HeldLease, Lease, LeaseTimes};
use crate::store::{Claim, Grant};

impl Acquisition {
    /// Returns the guard for the grant of `claim`; `None` if the client is gone.
    pub(super) fn guard(&self, claim: &Arc<Claim>, grant: &Grant) -> Option<Guard> {
        let client = self.client.upgrade()?;
        let times = LeaseTimes {
            ttl: self.ttl,
            delay: self.delay,
            max_hold: self.max_hold,
        };
        let env = &self.context.env;
        let spread = env.random_span(Duration::ZERO, times.spread());
        let lease = Lease::granted(times, grant.term, spread);
        let held_lease = HeldLease::new(
            client.next_lease_id(),
            Arc::clone(claim),
            grant.fence,
            lease,
        );
        let held_lease = Arc::new(held_lease);
        client.keep(&held_lease, grant.term.since);
        Some(Guard::new(held_lease, client))
    }
}
