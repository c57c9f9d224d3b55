//! How an operator initializes a quorum, which declares that its members held nothing before.

use std::time::Duration;

use leasehold::env::Entropy;
use leasehold::store::{MemberFailure, MemberRecord, MemberRecordEdit, MemberSet, MemberStatus};
use leasehold::{Error, ErrorKind};

use super::{MemberAnswer, draw, trust_of};
use crate::trust::{RecordStep, UntrustedReason};

/// Returns the first record of each member, in the order of the answers. After all of them are written, ask
/// the members again for the [`completion`].
///
/// # Errors
///
/// If the quorum is initialized already, or if a member does not answer, has a record, holds a lock, or
/// cannot be a member. The error names all such members.
pub fn first_records(
    set: &MemberSet,
    answers: &[MemberAnswer],
    entropy: &dyn Entropy,
) -> Result<Vec<MemberRecordEdit>, Error> {
    let has_its_record = |answer: &MemberAnswer| {
        let member_record = answer
            .status
            .as_ref()
            .ok()
            .and_then(|it| it.member_record.as_ref());
        member_record
            .is_some_and(|member_record| member_record.set == *set && member_record.is_formed())
    };
    if answers.iter().all(has_its_record) {
        let text = "the quorum is already initialized; nothing to do";
        return Err(Error::new(ErrorKind::InvalidInput, text));
    }
    let trust = trust_of(set, answers);
    let obstacles = answers.iter().enumerate().filter_map(|(member, answer)| {
        let error = obstacle(answer, trust.may_ask(member))?;
        Some(MemberFailure::new(answer.id.clone(), answer.named(error)))
    });
    let obstacles: Vec<MemberFailure> = obstacles.collect();
    if !obstacles.is_empty() {
        return Err(nothing_written(obstacles));
    }
    let steps = trust.form(&mut draw(entropy), |_| Some(Duration::MAX));
    Ok(writes(steps).map(|(_, edit)| edit).collect())
}

/// Returns the records that declare the quorum initialized, each with the position of its member in the
/// answers.
///
/// # Errors
///
/// If a member does not answer.
pub fn completion(
    set: &MemberSet,
    answers: &[MemberAnswer],
    entropy: &dyn Entropy,
) -> Result<Vec<(usize, MemberRecordEdit)>, Error> {
    for answer in answers {
        if let Err(error) = &answer.status {
            return Err(answer.named(error.clone()));
        }
    }
    let steps = trust_of(set, answers).member_record_steps(&mut draw(entropy));
    Ok(writes(steps).collect())
}

fn writes(steps: Vec<RecordStep>) -> impl Iterator<Item = (usize, MemberRecordEdit)> {
    steps.into_iter().filter_map(|step| match step {
        RecordStep::Write(member, edit) => Some((member, edit)),
        RecordStep::Observe(..) | RecordStep::Refresh(_) => None,
    })
}

/// Returns why a member cannot be in a new quorum, if so.
fn obstacle(answer: &MemberAnswer, verdict: Result<(), &UntrustedReason>) -> Option<Error> {
    let refuse = |text: String| Some(Error::new(ErrorKind::InvalidInput, text));
    match (&answer.status, verdict) {
        (Err(error), _) => Some(error.clone()),
        (
            Ok(MemberStatus {
                member_record: Some(member_record),
                ..
            }),
            _,
        ) => refuse(has_a_record(member_record)),
        // No member of a new quorum has a record.
        (Ok(_), Ok(()) | Err(UntrustedReason::NotFormed { .. })) => match &answer.held {
            Ok(None) => None,
            Ok(Some(key)) => refuse(format!(
                "it holds lock {:?}; wait until it is released",
                key.as_str()
            )),
            Err(error) => Some(error.clone()),
        },
        (Ok(_), Err(reason)) => Some(reason.error()),
    }
}

fn has_a_record(member_record: &MemberRecord) -> String {
    format!(
        "already belongs to the quorum {} (generation {})",
        member_record.set, member_record.generation
    )
}

/// The error has the kind of an obstacle that waiting does not mend, if there is one.
fn nothing_written(obstacles: Vec<MemberFailure>) -> Error {
    let kind = |failure: &MemberFailure| failure.error.kind();
    let lasting =
        |kind: ErrorKind| matches!(kind, ErrorKind::InvalidInput | ErrorKind::Unsupported);
    let kind = match obstacles.iter().map(kind).any(lasting) {
        true => ErrorKind::InvalidInput,
        false => kind(&obstacles[0]),
    };
    Error::new(kind, "nothing was written").with_members(obstacles)
}
