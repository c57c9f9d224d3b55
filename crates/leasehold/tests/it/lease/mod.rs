//! What happens to a lease while it is held.

mod closing;
mod downgrade;
mod keeping;
mod lock_delay;
mod losing;
mod running;
mod sessions;
mod watching;
