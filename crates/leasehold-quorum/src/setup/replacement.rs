//! How an operator moves a member to another server, under the same id.

use leasehold_types::{
    Entropy, Error, ErrorKind, MemberId, MemberRecord, MemberRecordEdit, MemberSet, MemberStatus,
};

use super::{MemberAnswer, check_member, readmission, refuse};
use crate::ballot::majority;

/// Returns the first record of the new server of `id`, or `None` if it has one. The record is confirmed once the others
/// know the server. Then it has no vote for the longest TTL and a second. `former` is what the server at
/// the old address reports, if it answers.
///
/// # Errors
///
/// If the other members with a record of this quorum are no majority, if the new server does not answer,
/// holds a lock, or cannot be a member, or if the former one was replaced by another server before.
pub fn replacement(
    set: &MemberSet,
    id: &MemberId,
    former: Option<&MemberStatus>,
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
    let former = former.and_then(|former| former.member_record.as_ref());
    if new.is_none_or(|new| new.member_record().is_none())
        && former.is_some_and(|former| was_replaced(id, former, answers))
    {
        return refuse(format!(
            "{} was moved to another server before, so nothing was written; use the list with that server, and \
             replace it there",
            id.as_str()
        ));
    }
    readmission(set, id, answers, entropy)
}

/// Whether the record of the former server of `id` says that it was replaced, or another member knows a later server.
fn was_replaced(id: &MemberId, former: &MemberRecord, answers: &[MemberAnswer]) -> bool {
    let mut others = answers.iter().filter(|answer| answer.id != *id);
    former.set.ids == [alone(id)]
        || others.any(|answer| {
            let record = answer.member_record();
            record.is_some_and(|record| former.was_replaced_according_to(record, id))
        })
}

/// The only member of the quorum of a server that was replaced.
fn alone(id: &MemberId) -> MemberId {
    MemberId::new(format!("{} (replaced)", id.as_str()))
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
    Some(MemberRecordEdit {
        expected: Some(record.epoch()),
        // A quorum of its own, which contains no member of this one.
        set: MemberSet::new([alone(id)], set.max_ttl, set.clock_tolerance),
        generation: generation + 1,
        run: run.clone(),
        durable: *durable,
        data_generation: *data_generation,
        age: None,
        seen: Vec::new(),
    })
}
