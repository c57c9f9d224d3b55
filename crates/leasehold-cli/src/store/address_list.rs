//! Splits a list of addresses.

pub(crate) use leasehold_stores::split as addresses_in;
