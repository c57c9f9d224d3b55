use crate::error::Error;
use crate::member::{MemberFailure, MemberId, Presence};

/// How one member of a set is, as one client sees it. For people and monitoring.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberHealth {
    /// The member.
    pub id: MemberId,
    /// What it says of itself, or why it could not be asked.
    pub presence: Result<Presence, Error>,
    /// Why its answers do not count, and after how long they do again. `None`: they count.
    pub distrust: Option<MemberFailure>,
}

impl MemberHealth {
    /// A member that answered `presence`, and whose answers count.
    pub fn new(id: MemberId, presence: Result<Presence, Error>) -> Self {
        Self {
            id,
            presence,
            distrust: None,
        }
    }
}
