//! How an operator gives a new record to a member that lost its own, when clients lack evidence.

use std::time::Duration;

use leasehold_types::{
    DataGeneration, Entropy, Error, ErrorKind, MemberFailure, MemberId, MemberRecord,
    MemberRecordEdit, MemberSet,
};

use super::{MemberAnswer, admission, refuse, trust_of};
use crate::ballot::majority;
use crate::trust::{RecordStep, Trust, UntrustedReason};

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

/// Returns the new record of the member `id`, or `None` if it has a record and no other member knows a later server
/// under this id.
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
    let trust = trust_of(set, answers);
    let mut contradictions = contradictions(answers, &trust);
    let at = answers.iter().position(|answer| answer.id == *id);
    let verdict = at.map(|at| trust.may_ask(at.into()));
    let was_replaced = matches!(verdict, Some(Err(UntrustedReason::Replaced { .. })));
    contradictions.retain(|failure| failure.id != *id || !was_replaced);
    if !contradictions.is_empty() {
        let text = format!("{id} was not readmitted, because the members contradict each other");
        return Err(Error::new(ErrorKind::InvalidInput, text).with_members(contradictions));
    }
    let Some(answer) = answers.iter().find(|answer| answer.id == *id) else {
        return refuse(format!("{id} was not asked"));
    };
    let status = answer.status.as_ref();
    let status = status.map_err(|error| answer.named(error.clone()))?;
    let has_record = |record: &MemberRecord| record.is_formed() && !was_replaced;
    if status.member_record.as_ref().is_some_and(has_record) {
        return Ok(None);
    }
    let others = answers.iter().filter(|answer| answer.id != *id);
    let records = others.filter_map(|answer| {
        let member_record = answer.status.as_ref().ok()?.member_record.as_ref()?;
        member_record
            .is_formed()
            .then_some((&answer.id, member_record))
    });
    let records: Vec<(&MemberId, &MemberRecord)> = records.collect();
    let generations = records.iter().map(|(_, record)| record.generation);
    let Some(generation) = MemberRecord::latest(generations) else {
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
        generation: match records.len() >= majority(set.ids.len()) {
            // Once they know the server, it is confirmed. Without a majority, the operator's word must do.
            true => 0,
            false => generation,
        },
        run: status.run.clone(),
        durable: status.durable,
        data_generation: admission(id, answers, entropy),
        age: Some(Duration::ZERO),
        seen: seen.collect(),
    }))
}

/// Returns the data generation that the other members have to note ([`confirmation`]) before the member `id` has a
/// vote, if its record is not confirmed yet.
pub fn unconfirmed(id: &MemberId, answers: &[MemberAnswer]) -> Option<DataGeneration> {
    let answer = answers.iter().find(|answer| answer.id == *id)?;
    let record = answer.member_record()?;
    (!record.is_formed()).then_some(record.data_generation)
}

/// Returns the confirmed record of the member `id`, once a majority of the others know its data generation.
pub fn confirmation(
    set: &MemberSet,
    id: &MemberId,
    answers: &[MemberAnswer],
    entropy: &dyn Entropy,
) -> Option<MemberRecordEdit> {
    let steps = trust_of(set, answers).member_record_steps(entropy);
    steps.into_iter().find_map(|step| match step {
        RecordStep::Write(member, edit) if answers[usize::from(member)].id == *id => Some(edit),
        _ => None,
    })
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
