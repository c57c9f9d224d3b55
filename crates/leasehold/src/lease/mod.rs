//! Leases: how long each is valid, and the renewer that renews all leases of a client.

mod client_context;
mod client_core;
mod failed_renewals;
mod held_lease;
mod new_leases;
mod pending_attempts;
mod release;
mod renewer;
mod timers;
mod unconfirmed_releases;
mod validity;

pub(crate) use client_context::ClientContext;
pub(crate) use client_core::ClientCore;
pub(crate) use held_lease::HeldLease;
pub(crate) use release::Release;
pub(crate) use validity::{Lease, LeaseTimes};
