//! How an operator moves a member to another server, under the same id.

use leasehold_types::{
    Entropy, Error, ErrorKind, MemberId, MemberRecord, MemberRecordEdit, MemberSet, MemberStatus,
};

use super::{MemberAnswer, check_member, readmission, refuse};
use crate::ballot::majority;

/// Returns the first record of the new server of `id`, or `None` if it has one. The server has no vote for the
/// longest TTL and a second.
///
/// # Errors
///
/// If the other members with a record of this quorum are no majority, or if the new server does not answer,
/// holds a lock, or cannot be a member.
pub fn replacement(
    set: &MemberSet,
    id: &MemberId,
    answers: &[MemberAnswer],
    entropy: &dyn Entropy,
) -> Result<Option<MemberRecordEdit>, Error> {
    check_member(set, id)?;
    let has_record = |answer: &&MemberAnswer| {
        let record = answer.member_record();
        answer.id != *id && record.is_some_and(|it| it.set == *set && it.is_formed())
    };
    let (others, needed) = (
        answers.iter().filter(has_record).count(),
        majority(set.ids.len()),
    );
    if others < needed {
        let text = format!(
            "{others} of the other servers answer and have the record of this quorum; {needed} are needed"
        );
        return Err(Error::new(ErrorKind::Unreachable, text));
    }
    let new = answers.iter().find(|answer| answer.id == *id);
    if let Some(new) = new
        && let Some(key) = new
            .held
            .as_ref()
            .map_err(|error| new.named(error.clone()))?
    {
        return refuse(format!(
            "the new server of {id} holds lock {:?}; use an empty server",
            key.as_str()
        ));
    }
    readmission(set, id, answers, entropy)
}

/// Returns what to write to the server that `id` leaves, so that no client counts it any longer; `None` if its
/// record is not one of this quorum.
pub fn retirement(
    set: &MemberSet,
    id: &MemberId,
    status: MemberStatus,
) -> Option<MemberRecordEdit> {
    let record = status.member_record.filter(|record| record.set == *set)?;
    let MemberRecord {
        run,
        durable,
        data_generation,
        generation,
        ..
    } = &record;
    // A quorum of its own, which contains no member of this one.
    let alone = MemberId::new(format!("{} (replaced)", id.as_str()));
    Some(MemberRecordEdit {
        expected: Some(record.epoch()),
        set: MemberSet::new([alone], set.max_ttl, set.clock_tolerance),
        generation: generation + 1,
        run: run.clone(),
        durable: *durable,
        data_generation: *data_generation,
        age: None,
        seen: Vec::new(),
    })
}
