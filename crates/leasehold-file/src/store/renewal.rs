//! RenewReply of the locks held here. Nothing expires, so a renewal checks whether each lock is still
//! held. It also converts exclusive locks to shared ones.

use std::sync::Arc;

use leasehold::LostReason;
use leasehold::clock::BootInstant;
use leasehold::store::background::blocking;
use leasehold::store::{Held, LockRequest, RenewReply, Term};

use crate::locking::held_lock::HeldLock;
use crate::locking::table::{RequestId, Table};

/// Answers each of `leases` at `now`, and makes an exclusive lock shared if its request now shares it.
pub(crate) async fn renew(
    table: &Arc<Table>,
    leases: &[Held],
    now: BootInstant,
) -> Vec<RenewReply> {
    let of_lease = |lease: &Held| {
        let held = table.held(&RequestId::of(&lease.request));
        (held, lease.request.clone())
    };
    let held: Vec<_> = leases.iter().map(of_lease).collect();
    let renewal = move |(held, request): (Option<HeldLock>, Arc<LockRequest>)| match held {
        Some(held) => held.renewal(&request, now),
        None => RenewReply::Lost(LostReason::Gone),
    };
    let looked = blocking(move || held.into_iter().map(renewal).collect::<Vec<_>>()).await;
    let mut renewals = match looked {
        Ok(renewals) => renewals,
        Err(error) => return vec![RenewReply::Unknown(error); leases.len()],
    };
    for (lease, renewal) in leases.iter().zip(&mut renewals) {
        if let RenewReply::Renewed(term) = *renewal {
            *renewal = downgrade_if_due(table, &lease.request, term).await;
        }
    }
    renewals
}

async fn downgrade_if_due(
    table: &Arc<Table>,
    request: &Arc<LockRequest>,
    term: Term,
) -> RenewReply {
    let is_due = |held: &HeldLock| held.is_downgraded_by(request);
    let (table, id, request) = (table.clone(), RequestId::of(request), request.clone());
    if !table.held(&id).as_ref().is_some_and(is_due) {
        return RenewReply::Renewed(term);
    }
    // A release may be under way, and the lock must not come back after it.
    let guard = table.serialize(&id).await;
    let Some(held) = table.held(&id) else {
        return RenewReply::Lost(LostReason::Gone);
    };
    // If this future is dropped, all of this work is done nevertheless.
    let work = move || {
        let renewal = match held.downgraded(&request) {
            Ok(Some(shared)) => {
                table.keep(id, shared);
                RenewReply::Renewed(term)
            }
            Ok(None) => {
                table.remove(&id);
                RenewReply::Lost(LostReason::Gone)
            }
            Err(error) => RenewReply::Unknown(error),
        };
        (renewal, guard)
    };
    match blocking(work).await {
        Ok((renewal, _turn)) => renewal,
        Err(error) => RenewReply::Unknown(error),
    }
}
