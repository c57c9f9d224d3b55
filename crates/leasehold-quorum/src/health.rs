//! The state of each member, for people and monitoring.

use std::time::Duration;

use crate::engine::{Engine, Now};
use crate::operation::{OperationId, Outcome};

/// How long a health check waits for a member.
const LIMIT: Duration = Duration::from_secs(1);

impl Engine {
    pub(crate) fn start_health_check(&mut self, now: Now, id: OperationId) {
        self.health_checks.insert(id, now.instant);
        self.set_timer(id, None, Some(now.instant + LIMIT));
        self.advance_health_checks(now);
    }

    pub(crate) fn cancel_health_check(&mut self, id: OperationId) {
        if let Some(began) = self.health_checks.remove(&id) {
            self.set_timer(id, Some(began + LIMIT), None);
        }
    }

    /// Asks members that were not asked yet, and ends the operations that have all the answers they need.
    pub(crate) fn advance_health_checks(&mut self, now: Now) {
        let running: Vec<_> = self
            .health_checks
            .iter()
            .map(|(id, it)| (*id, *it))
            .collect();
        for (id, began) in running {
            let is_over = began + LIMIT <= now.instant;
            // Ask all members before the first answer decides.
            let mut is_settled = true;
            for member in 0..self.members.len() {
                is_settled &= self.membership.look(now.instant, member, began);
            }
            if is_settled || is_over {
                self.cancel_health_check(id);
                let members = 0..self.members.len();
                let health = members
                    .map(|member| self.membership.health(now.instant, member, began))
                    .collect();
                self.finish(id, Outcome::Health(health));
            }
        }
    }
}
