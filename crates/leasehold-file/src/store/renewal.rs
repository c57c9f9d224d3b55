//! Renewal of the locks held here. Nothing expires, so a renewal checks whether each lock is still
//! held. It also converts exclusive locks to shared ones.

use std::sync::Arc;

use leasehold::LostReason;
use leasehold::clock::BootInstant;
use leasehold::store::background::blocking;
use leasehold::store::{Claim, Held, Renewal, Term};

use crate::locking::held_lock::HeldLock;
use crate::locking::table::{ClaimId, Table};

/// Answers each of `leases` at `now`, and makes an exclusive lock shared if its claim now shares it.
pub(crate) async fn renew(table: &Arc<Table>, leases: &[Held], now: BootInstant) -> Vec<Renewal> {
    let of_lease = |lease: &Held| {
        let held = table.held(&ClaimId::of(&lease.claim));
        (held, lease.claim.clone())
    };
    let held: Vec<_> = leases.iter().map(of_lease).collect();
    let renewal = move |(held, claim): (Option<HeldLock>, Arc<Claim>)| match held {
        Some(held) => held.renewal(&claim, now),
        None => Renewal::Lost(LostReason::Gone),
    };
    let looked = blocking(move || held.into_iter().map(renewal).collect::<Vec<_>>()).await;
    let mut renewals = match looked {
        Ok(renewals) => renewals,
        Err(error) => return vec![Renewal::Unknown(error); leases.len()],
    };
    for (lease, renewal) in leases.iter().zip(&mut renewals) {
        if let Renewal::Renewed(term) = *renewal {
            *renewal = downgrade_if_due(table, &lease.claim, term).await;
        }
    }
    renewals
}

async fn downgrade_if_due(table: &Arc<Table>, claim: &Arc<Claim>, term: Term) -> Renewal {
    let is_due = |held: &HeldLock| held.is_downgraded_by(claim);
    let (table, id, claim) = (table.clone(), ClaimId::of(claim), claim.clone());
    if !table.held(&id).as_ref().is_some_and(is_due) {
        return Renewal::Renewed(term);
    }
    // A release may be under way, and the lock must not come back after it.
    let guard = table.lock_claim(&id).await;
    let Some(held) = table.held(&id) else {
        return Renewal::Lost(LostReason::Gone);
    };
    // If this future is dropped, all of this work is done nevertheless.
    let work = move || {
        let renewal = match held.downgraded(&claim) {
            Ok(Some(shared)) => {
                table.keep(id, shared);
                Renewal::Renewed(term)
            }
            Ok(None) => {
                table.remove(&id);
                Renewal::Lost(LostReason::Gone)
            }
            Err(error) => Renewal::Unknown(error),
        };
        (renewal, guard)
    };
    match blocking(work).await {
        Ok((renewal, _turn)) => renewal,
        Err(error) => Renewal::Unknown(error),
    }
}
