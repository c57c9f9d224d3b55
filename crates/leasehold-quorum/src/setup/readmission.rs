//! How an operator gives a new record to a member that lost its own, when clients lack evidence.

use std::time::Duration;

use leasehold_types::{
    DataGeneration, Entropy, Error, ErrorKind, MemberFailure, MemberId, MemberRecord,
    MemberRecordEdit, MemberSet,
};

use super::{MemberAnswer, refuse, trust_of};
use crate::trust::{Trust, UntrustedReason};

/// Checks that the quorum has this member, before any member is asked.
///
/// # Errors
///
/// If it does not.
pub fn check_member(set: &MemberSet, id: &MemberId) -> Result<(), Error> {
    match set.ids.contains(id) {
        true => Ok(()),
        false => refuse(format!("{id} is not a member of this quorum: {set}")),
    }
}

/// Returns the new record of the member `id`, or `None` if it has a record.
///
/// # Errors
///
/// If the member does not answer, no member that answers has a record of this quorum, or the members
/// contradict each other.
pub fn readmission(
    set: &MemberSet,
    id: &MemberId,
    answers: &[MemberAnswer],
    entropy: &dyn Entropy,
) -> Result<Option<MemberRecordEdit>, Error> {
    check_member(set, id)?;
    let contradictions = contradictions(answers, &trust_of(set, answers));
    if !contradictions.is_empty() {
        let text = format!("{id} was not readmitted, because the members contradict each other");
        return Err(Error::new(ErrorKind::InvalidInput, text).with_members(contradictions));
    }
    let Some(answer) = answers.iter().find(|answer| answer.id == *id) else {
        return refuse(format!("{id} was not asked"));
    };
    let status = answer.status.as_ref();
    let status = status.map_err(|error| answer.named(error.clone()))?;
    if status
        .member_record
        .as_ref()
        .is_some_and(MemberRecord::is_formed)
    {
        return Ok(None);
    }
    let records = answers.iter().filter_map(|answer| {
        let member_record = answer.status.as_ref().ok()?.member_record.as_ref()?;
        member_record
            .is_formed()
            .then_some((&answer.id, member_record))
    });
    let records: Vec<(&MemberId, &MemberRecord)> = records.collect();
    let Some(generation) = records
        .iter()
        .map(|(_, member_record)| member_record.generation)
        .max()
    else {
        return refuse(format!(
            "{id} was not readmitted: no member that answers has a record of this quorum; a client \
             initializes it once all members answer"
        ));
    };
    let seen = records
        .iter()
        .map(|(id, member_record)| ((*id).clone(), member_record.data_generation));
    Ok(Some(MemberRecordEdit {
        expected: status.member_record.as_ref().map(MemberRecord::epoch),
        set: set.clone(),
        generation,
        run: status.run.clone(),
        durable: status.durable,
        data_generation: DataGeneration::random(entropy),
        age: Some(Duration::ZERO),
        seen: seen.collect(),
    }))
}

/// Returns the members that answered and cannot be in this quorum.
fn contradictions(answers: &[MemberAnswer], trust: &Trust) -> Vec<MemberFailure> {
    let contradiction =
        |(member, answer): (usize, &MemberAnswer)| match trust.may_ask(member.into()) {
            Ok(()) | Err(UntrustedReason::NotFormed { .. }) => None,
            Err(reason) => {
                let error = answer.named(reason.error());
                Some(MemberFailure::new(answer.id.clone(), error))
            }
        };
    answers
        .iter()
        .enumerate()
        .filter_map(contradiction)
        .collect()
}
