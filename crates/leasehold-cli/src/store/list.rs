//! How the addresses of one store are told apart in a list.

pub(crate) use leasehold_stores::split as addresses_in;
