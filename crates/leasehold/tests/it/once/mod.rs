//! Requests that take effect once, and the values that record them.

mod callers;
mod record_writes;
mod requests;
mod unsettled;
