//! How locks, their holders, and their waiters are shown.

pub(crate) mod break_text;
pub(crate) mod holder_text;
pub(crate) mod leader_text;
pub(crate) mod lock_table;
pub(crate) mod minority;
pub(crate) mod wait;
pub(crate) mod waiter_text;
