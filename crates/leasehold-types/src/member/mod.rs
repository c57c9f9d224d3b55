//! What a member of a quorum reports, what it keeps about itself, and its health.

mod health;
mod record;
mod status;

pub use health::{MemberHealth, requests_run_in};
pub use record::{
    DataGeneration, Epoch, MemberRecord, MemberRecordEdit, MemberSet, Observation, RunId,
};
pub use status::{FenceConfirmation, Incarnation, MemberStatus, Sample};
