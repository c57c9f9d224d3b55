//! Maintains the leases of programs: renews them, and ends them at their deadlines.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::BootInstant;
use leasehold::store::{Held, LockRequest, RenewReply, Term};
use leasehold_quorum::{Operation, ReleaseMode};

use crate::history::{Wait, What};
use crate::state::program::Purpose;
use crate::state::simulation::Simulation;

impl Simulation {
    pub(crate) fn renew(&mut self, client: usize, waits: Vec<Wait>) {
        let now = self.clients[client].now(self.now);
        let it = &mut self.clients[client];
        let mut held = Vec::new();
        for wait in &waits {
            let Some(guard) = it.guards.get_mut(wait) else {
                continue;
            };
            guard.renewing = true;
            held.push(Held {
                request: Arc::clone(&guard.lock_request),
                fence: guard.fence,
            });
        }
        let operation = it.start(now, Operation::Renew(held));
        let purpose = Purpose::Renew {
            waits,
            sent: now.instant,
        };
        it.operations.insert(operation, purpose);
    }

    pub(crate) fn renewed(
        &mut self,
        client: usize,
        wait: Wait,
        sent: BootInstant,
        renewal: &RenewReply,
    ) {
        let now = self.clients[client].now(self.now).instant;
        let it = &mut self.clients[client];
        let Some(guard) = it.guards.get_mut(&wait) else {
            return;
        };
        guard.renewing = false;
        let term = guard.lock_request.usable_ttl();
        match renewal {
            _ if guard.deadline <= now => self.lose(client, wait),
            RenewReply::Renewed(granted) => {
                let earned = deadline(&guard.lock_request, granted);
                guard.deadline = guard.deadline.max(earned);
                guard.renew_at = sent + term / 3;
                let until = it.clock.when(guard.deadline);
                self.add(What::Extended { wait, until });
            }
            RenewReply::Unknown(_) => guard.renew_at = now + term / 30,
            RenewReply::Lost(_) => self.lose(client, wait),
        }
    }

    fn lose(&mut self, client: usize, wait: Wait) {
        let Some(guard) = self.clients[client].guards.get(&wait) else {
            return;
        };
        let program = guard.program;
        let has_delay = !guard.lock_request.delay.is_zero();
        self.add(What::Lost { wait });
        // A lost guard leaves the lock delay in place.
        let mode = match has_delay {
            true => ReleaseMode::Detach,
            false => ReleaseMode::HandOver,
        };
        self.release(client, wait, mode, None);
        self.rest(client, program);
    }

    /// Renews guards whose renewal is due, and marks those whose deadline passed as lost.
    pub(crate) fn tend_guards(&mut self, client: usize) {
        let now = self.clients[client].now(self.now).instant;
        let guards = self.clients[client].guards.iter();
        let lost: Vec<Wait> = guards
            .filter(|(_, guard)| guard.deadline <= now)
            .map(|(wait, _)| *wait)
            .collect();
        for wait in lost {
            self.lose(client, wait);
        }
        let soon = now + TOGETHER;
        let guards = self.clients[client].guards.iter();
        let due = guards.filter(|(_, guard)| !guard.renewing && guard.renew_at <= soon);
        let (is_due, due): (Vec<bool>, Vec<Wait>) = due
            .map(|(wait, guard)| (guard.renew_at <= now, *wait))
            .unzip();
        if is_due.contains(&true) {
            self.renew(client, due);
        }
    }

    /// When the next guard of the client is renewed or lost.
    pub(crate) fn next_guard(&self, client: usize) -> Option<BootInstant> {
        let guards = self.clients[client].guards.values();
        let next = guards.map(|guard| match guard.renewing {
            true => guard.deadline,
            false => guard.deadline.min(guard.renew_at),
        });
        next.min()
    }
}

/// Renewals that are due within this time share their requests.
const TOGETHER: Duration = Duration::from_millis(20);

/// Returns the deadline of a guard, as a client computes it.
pub(super) fn deadline(lock_request: &LockRequest, term: &Term) -> BootInstant {
    let deadline = term.deadline(lock_request.usable_ttl(), lock_request.delay);
    deadline.expect("a lease on servers ends by itself")
}
