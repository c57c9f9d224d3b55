//! Real servers, contracts and checkers for the tests of Leasehold.
#![forbid(unsafe_code)]

pub mod servers;
