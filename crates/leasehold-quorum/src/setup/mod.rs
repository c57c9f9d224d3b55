//! What an operator does to a quorum: initialize it, change its members, and readmit or replace a member.
//!
//! These functions decide from the members' answers alone. They return the member records to write, or an
//! error. The caller asks all members at once, and writes.

mod change;
mod initialize;
mod readmission;
mod replacement;
#[cfg(test)]
mod tests;

use leasehold_types::{
    BootInstant, DataGeneration, Entropy, Error, ErrorKind, Key, MemberId, MemberRecord, MemberSet,
    MemberStatus,
};

use crate::trust::{Interval, Trust};

pub use crate::member::index::MemberIndex;
pub use crate::trust::{RecordStep, stated_set};

pub use change::Change;
pub use initialize::{Past, initialization, is_initialized};
pub use readmission::{check_member, confirmation, readmission, unconfirmed};
pub use replacement::{replacement, retirement};

/// What one member answered.
#[derive(Clone, Debug)]
pub struct MemberAnswer {
    /// The member.
    pub id: MemberId,
    /// Its status, or why it did not report it.
    pub status: Result<MemberStatus, Error>,
    /// A lock that it holds. Ask this of members without a record; members with one are not set up again.
    pub held: Result<Option<Key>, Error>,
    /// Whether it has a fence counter, which shows that a client asked for a lock within the last days. Ask this
    /// of members with a record.
    pub was_used: Result<bool, Error>,
    /// When it was asked for the status.
    pub sent: BootInstant,
    /// When the status arrived.
    pub received: BootInstant,
}

impl MemberAnswer {
    /// Returns the record that the member has.
    pub fn member_record(&self) -> Option<&MemberRecord> {
        self.status.as_ref().ok()?.member_record.as_ref()
    }

    fn named(&self, error: Error) -> Error {
        error.with_store(self.id.to_string())
    }
}

/// Returns what a client knows from these answers.
fn trust_of(set: &MemberSet, answers: &[MemberAnswer]) -> Trust {
    let ids = answers.iter().map(|answer| answer.id.clone()).collect();
    let mut trust = Trust::new(ids, set.clone(), true);
    for (member, answer) in answers.iter().enumerate() {
        if let Ok(status) = &answer.status {
            let at = Interval {
                sent: answer.sent,
                received: answer.received,
            };
            trust.present(member.into(), status.clone(), at);
        }
    }
    trust
}

/// Draws the data generation of a server that is admitted as the member `id`.
fn admission(id: &MemberId, answers: &[MemberAnswer], entropy: &dyn Entropy) -> DataGeneration {
    let records = answers.iter();
    let records = records.filter_map(|answer| Some((&answer.id, answer.member_record()?)));
    crate::trust::admission(id, records, entropy)
}

fn refuse<T>(text: String) -> Result<T, Error> {
    Err(Error::new(ErrorKind::InvalidInput, text))
}

/// Returns the error for a state of the members that passes.
fn not_yet<T>(text: String) -> Result<T, Error> {
    Err(Error::new(ErrorKind::Untrusted, text))
}
