//! Leader election: a lock that its holder keeps until it resigns, and a record that tells others who holds
//! it.
//!
//! A recipe built on [`Lock`](crate::Lock) and the record next to it. It has nothing to do with how a
//! quorum decides an attempt.

mod announcement;
mod announcer;
mod change_tracker;
mod lead;
mod leader_change;
mod leader_election;
mod leader_watch;
mod leadership;

#[cfg(any(test, fuzzing))]
pub(crate) use announcement::Announcement;
pub use leader_change::{Leader, LeaderChange};
pub use leader_election::Election;
pub use leader_watch::LeaderWatch;
pub use leadership::Leadership;
