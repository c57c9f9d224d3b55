//! Takes locks and waits for them: the attempts, and what the process keeps between them.

pub(crate) mod attempt;
pub(crate) mod attempts;
pub(crate) mod cleanup;
pub(crate) mod contents;
pub(crate) mod held_lock;
pub(crate) mod kept_open;
pub(crate) mod notifications;
pub(crate) mod occupancy;
pub(crate) mod table;
pub(crate) mod waiting;
pub(crate) mod writer_yield;
