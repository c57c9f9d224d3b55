//! What people see of locks, as plain values. Times are seconds: spans, or since 1970.

use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::look::{
    BreakOptions, BreakOutcome, ClientInfo, Holder, ListedLock, LockListing, Waiter,
};
use leasehold::member::MemberHealth;
use leasehold::{Error, ErrorKind, Fence, Mode};
use serde::Serialize;

use crate::ErrorFields;

/// A client's description of itself.
#[derive(Clone, Debug, Serialize)]
pub struct ClientFields {
    pub id: String,
    pub host: String,
    pub pid: u32,
    pub program: String,
    pub user: Option<String>,
    pub label: Option<String>,
    pub command: Option<String>,
}

/// A holder of a lock.
#[derive(Clone, Debug, Serialize)]
pub struct HolderFields {
    /// A description, for people.
    pub text: String,
    /// `exclusive`, `shared` or `permit`.
    pub mode: &'static str,
    /// The number of permits of a semaphore.
    pub permits: Option<u32>,
    pub owner: Option<String>,
    pub client: Option<ClientFields>,
    pub fence: Option<u64>,
    pub since: Option<f64>,
    /// The time left until the lease ends, unless it is renewed.
    pub remaining: Option<f64>,
    /// Whether an operator broke the lease.
    pub broken: bool,
}

/// A waiter for a lock.
#[derive(Clone, Debug, Serialize)]
pub struct WaiterFields {
    pub text: String,
    pub mode: &'static str,
    pub permits: Option<u32>,
    pub owner: String,
    pub client: Option<ClientFields>,
    pub since: f64,
}

/// A held lock of a listing.
#[derive(Clone, Debug, Serialize)]
pub struct LockFields {
    pub name: String,
    pub holders: Vec<HolderFields>,
}

/// A listing of locks.
#[derive(Clone, Debug, Serialize)]
pub struct ListingFields {
    pub locks: Vec<LockFields>,
    /// Whether there are more locks than the limit.
    pub more: bool,
    /// Whether a majority of the members answered.
    pub has_majority: bool,
}

/// A member of the store.
#[derive(Clone, Debug, Serialize)]
pub struct MemberFields {
    pub id: String,
    /// Whether its answers count: it answers, and is trusted.
    pub has_vote: bool,
    pub durable: bool,
    /// Why it has no vote.
    pub error: Option<ErrorFields>,
    /// When it has a vote again, if that is known.
    pub eligible_after: Option<f64>,
}

/// What to break, and how.
#[derive(Clone, Debug)]
pub struct Breaking {
    pub name: String,
    pub fence: u64,
    /// Whether others may acquire the lock before the lease ends.
    pub at_once: bool,
    pub user: Option<String>,
    pub reason: Option<String>,
}

/// The outcome of a break.
#[derive(Clone, Debug, Serialize)]
pub struct BreakFields {
    /// `done`, `free` or `held_by`.
    pub outcome: &'static str,
    /// How much longer the lock stays closed.
    pub closed_for: Option<f64>,
    /// The holders, if none of them has the fence.
    pub holders: Vec<HolderFields>,
}

impl Breaking {
    pub(crate) fn fence(&self) -> Result<Fence, Error> {
        let text = "a fence is a number from 1 on";
        Fence::new(self.fence).ok_or_else(|| Error::new(ErrorKind::InvalidInput, text))
    }

    pub(crate) fn options(&self) -> Result<BreakOptions, Error> {
        let mut how = match self.at_once {
            true => BreakOptions::at_once(),
            false => BreakOptions::at_its_end(),
        };
        if let Some(user) = &self.user {
            how = how.by_user(user)?;
        }
        if let Some(reason) = &self.reason {
            how = how.because(reason)?;
        }
        Ok(how)
    }
}

impl ClientFields {
    pub(crate) fn of(client: &ClientInfo) -> Self {
        let owned = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        Self {
            id: client.id.to_string(),
            host: client.host.clone(),
            pid: client.pid,
            program: client.program.clone(),
            user: owned(&client.user),
            label: owned(&client.label),
            command: owned(&client.command),
        }
    }
}

impl HolderFields {
    pub(crate) fn of(holder: &Holder) -> Self {
        let (mode, permits) = mode_fields(holder.mode);
        Self {
            text: holder.to_string(),
            mode,
            permits,
            owner: holder.owner.map(|owner| owner.to_string()),
            client: holder.client.as_ref().map(ClientFields::of),
            fence: holder.fence.map(Fence::get),
            since: holder.since.map(seconds_since_1970),
            remaining: holder.remaining.as_ref().map(Duration::as_secs_f64),
            broken: holder.broken,
        }
    }
}

impl WaiterFields {
    pub(crate) fn of(waiter: &Waiter) -> Self {
        let (mode, permits) = mode_fields(waiter.mode);
        Self {
            text: waiter.to_string(),
            mode,
            permits,
            owner: waiter.ticket.waiter.to_string(),
            client: waiter.client.as_ref().map(ClientFields::of),
            since: seconds_since_1970(waiter.ticket.since),
        }
    }
}

impl ListingFields {
    pub(crate) fn of(listing: &LockListing) -> Self {
        let lock = |lock: &ListedLock| LockFields {
            name: lock.key.as_str().to_owned(),
            holders: lock
                .holders
                .iter()
                .map(|it| HolderFields::of(&it.holder))
                .collect(),
        };
        Self {
            locks: listing.locks.iter().map(lock).collect(),
            more: listing.more,
            has_majority: listing.has_majority(),
        }
    }
}

impl MemberFields {
    pub(crate) fn of(member: &MemberHealth) -> Self {
        let untrusted = member.untrusted_reason.as_ref().map(|why| &why.error);
        let error = member.status.as_ref().err().or(untrusted);
        Self {
            id: member.id.to_string(),
            has_vote: error.is_none(),
            durable: member.status.as_ref().is_ok_and(|status| status.durable),
            error: error.map(ErrorFields::from),
            eligible_after: error
                .and_then(Error::eligible_after)
                .map(|span| span.as_secs_f64()),
        }
    }
}

impl BreakFields {
    pub(crate) fn of(outcome: &BreakOutcome) -> Self {
        let (outcome, closed_for, holders) = match outcome {
            BreakOutcome::Done(broken, _) => ("done", broken.closed_for, &[][..]),
            BreakOutcome::Free => ("free", None, &[][..]),
            BreakOutcome::HeldBy(holders) => ("held_by", None, &holders[..]),
        };
        Self {
            outcome,
            closed_for: closed_for.map(|span| span.as_secs_f64()),
            holders: holders.iter().map(HolderFields::of).collect(),
        }
    }
}

fn mode_fields(mode: Mode) -> (&'static str, Option<u32>) {
    match mode {
        Mode::Exclusive => ("exclusive", None),
        Mode::Shared => ("shared", None),
        Mode::Permit(permits) => ("permit", Some(permits.get())),
    }
}

pub(crate) fn seconds_since_1970(time: WallTime) -> f64 {
    Duration::from_micros(time.as_micros()).as_secs_f64()
}
