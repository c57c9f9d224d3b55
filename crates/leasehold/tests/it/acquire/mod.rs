//! How locks are acquired: attempts, waits, and callers that are woken.

mod acquiring;
mod waits;
mod waking;
