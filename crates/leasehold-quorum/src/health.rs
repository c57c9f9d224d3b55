//! The state of each member, for people and monitoring.

use std::time::Duration;

use leasehold_types::BootInstant;

use crate::net::{Net, Timer};
use crate::operation::operations::Next;
use crate::operation::{OperationId, Outcome};

/// How long a health check waits for a member.
const LIMIT: Duration = Duration::from_secs(1);

/// Asks each member for its status.
#[derive(Debug)]
pub(crate) struct HealthCheck {
    id: OperationId,
    began: BootInstant,
    timer: Option<BootInstant>,
}

impl HealthCheck {
    pub(crate) fn new(net: &mut Net, id: OperationId) -> Self {
        let mut check = Self {
            id,
            began: net.now.instant,
            timer: None,
        };
        let end = check.began + LIMIT;
        net.set_timer(Timer::Health(id), &mut check.timer, Some(end));
        check
    }

    pub(crate) fn cancel(mut self, net: &mut Net) {
        net.set_timer(Timer::Health(self.id), &mut self.timer, None);
    }

    /// The timer is due.
    pub(crate) fn wake(&mut self, net: &mut Net) -> Next {
        self.timer = None;
        self.advance(net)
    }

    /// Asks the members that were not asked yet, and ends if it has all the answers that it needs.
    pub(crate) fn advance(&mut self, net: &mut Net) -> Next {
        let (now, members) = (net.now.instant, net.members.keys());
        // Ask all members before the first answer decides.
        let mut is_settled = true;
        for member in members.clone() {
            is_settled &= net.membership.look(now, member, self.began);
        }
        if !is_settled && now < self.began + LIMIT {
            return Next::Runs;
        }
        let health = members.map(|member| net.membership.health(now, member, self.began));
        let health = Outcome::Health(health.collect());
        net.set_timer(Timer::Health(self.id), &mut self.timer, None);
        net.finish(self.id, health);
        Next::Over
    }
}
