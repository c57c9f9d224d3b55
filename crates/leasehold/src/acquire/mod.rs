//! One call of `acquire`: its attempts, the waits between them, and what ends them.

mod acquisition;
mod backoff;
mod granted;
mod wait_policy;

pub(crate) use acquisition::Acquisition;
pub(crate) use wait_policy::WaitPolicy;
