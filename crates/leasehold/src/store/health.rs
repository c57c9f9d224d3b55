use crate::env::BoxFuture;
use crate::types::MemberHealth;

/// Shows the state of each member: an optional part of a [`Session`](super::Session) that consists of members.
pub trait Health: Send + Sync {
    /// Asks every member and returns its state, in the order in which the members were given. A member
    /// that does not answer is no error; its state says so. For diagnostics and monitoring.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn members(&self) -> BoxFuture<'_, Vec<MemberHealth>>;
}
