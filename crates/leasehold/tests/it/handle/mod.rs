//! Leases that outlive their guard.

mod handles;
mod leaving;
