//! Acquires the locks of a command, and holds them until it ends.

pub(crate) mod borrowed_lock;
pub(crate) mod context;
pub(crate) mod held_locks;
pub(crate) mod last_run;
pub(crate) mod lost_lock;
pub(crate) mod min_hold;
pub(crate) mod outer_runs;
pub(crate) mod release;
pub(crate) mod request;
mod wait_report;
