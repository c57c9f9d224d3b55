//! How an operator initializes a quorum, which states that its members held nothing before.

use std::time::Duration;

use leasehold_types::{
    Entropy, Error, ErrorKind, MemberFailure, MemberRecord, MemberRecordEdit, MemberSet,
    MemberStatus,
};

use super::{MemberAnswer, trust_of};
use crate::trust::{RecordStep, UntrustedReason, wait_of};

/// Returns the next steps of an operator who initializes a quorum, and none if nothing is left to do. After them, ask the
/// members again.
///
/// Another client may initialize the same quorum at the same time, or may have stopped halfway. Then the steps finish
/// what it began.
///
/// # Errors
///
/// If a member does not answer, belongs to another quorum, holds a lock, or cannot be a member, and if a lock may have
/// been granted since a client initialized the quorum. Before the first record is written, the error names all such members.
pub fn initialization(
    set: &MemberSet,
    answers: &[MemberAnswer],
    past: Past,
    entropy: &dyn Entropy,
) -> Result<Vec<RecordStep>, Error> {
    match () {
        () if is_initialized(set, answers) => declared_new(set, answers, past),
        () if is_begun(set, answers) => completion(set, answers, entropy),
        () => first_records(set, answers, entropy),
    }
}

/// Returns whether each member has a record of this quorum.
pub fn is_initialized(set: &MemberSet, answers: &[MemberAnswer]) -> bool {
    let mut records = answers.iter().map(MemberAnswer::member_record);
    records.all(|record| record.is_some_and(|record| record.set == *set && record.is_formed()))
}

/// Returns whether members have first records of this quorum alone. Once one of them is confirmed, all others must have
/// theirs: a member that lost its record then is readmitted.
fn is_begun(set: &MemberSet, answers: &[MemberAnswer]) -> bool {
    let records = || answers.iter().filter_map(MemberAnswer::member_record);
    let has_each = records().count() == answers.len();
    records().next().is_some()
        && records().all(|record| record.set == *set && (has_each || !record.is_formed()))
}

fn first_records(
    set: &MemberSet,
    answers: &[MemberAnswer],
    entropy: &dyn Entropy,
) -> Result<Vec<RecordStep>, Error> {
    let trust = trust_of(set, answers);
    let obstacles = answers.iter().enumerate().filter_map(|(member, answer)| {
        let error = obstacle(answer, trust.may_ask(member.into()))?;
        Some(MemberFailure::new(answer.id.clone(), answer.named(error)))
    });
    let obstacles: Vec<MemberFailure> = obstacles.collect();
    match obstacles.is_empty() {
        true => Ok(trust.form(entropy, |_| Some(Duration::MAX))),
        false => Err(nothing_written(obstacles)),
    }
}

/// Returns what completes the first records.
fn completion(
    set: &MemberSet,
    answers: &[MemberAnswer],
    entropy: &dyn Entropy,
) -> Result<Vec<RecordStep>, Error> {
    let trust = trust_of(set, answers);
    for (member, answer) in answers.iter().enumerate() {
        let error = match (&answer.status, trust.may_ask(member.into())) {
            (Err(error), _) => error.clone(),
            (_, Err(reason @ (UntrustedReason::Unfit(_) | UntrustedReason::SameServer(_)))) => {
                reason.error()
            }
            _ => continue,
        };
        return Err(answer.named(error));
    }
    Ok(trust.member_record_steps(entropy))
}

/// What an operator knows about a quorum that its first client initialized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// Nothing. The members' answers must show that no lock was granted there.
    Unknown,
    /// The members were new when the client initialized the quorum.
    New,
}

/// Returns the records which state that members of an initialized quorum were new. There is none for a member whose
/// record says so already, and none for one that lost its data or joined later.
fn declared_new(
    set: &MemberSet,
    answers: &[MemberAnswer],
    past: Past,
) -> Result<Vec<RecordStep>, Error> {
    let (mut steps, mut obstacles) = (Vec::new(), Vec::new());
    for (member, answer) in answers.iter().enumerate() {
        let Some(edit) = statement(set, answers, answer) else {
            continue;
        };
        match may_have_granted(answer) {
            Ok(true) if past == Past::Unknown => {
                let text = "locks may have been granted there since a client initialized the quorum; if no \
                            server had lost its data before that, state it with `leasehold init --new`";
                let error = answer.named(Error::new(ErrorKind::InvalidInput, text));
                obstacles.push(MemberFailure::new(answer.id.clone(), error));
            }
            Err(error) if past == Past::Unknown => {
                obstacles.push(MemberFailure::new(answer.id.clone(), answer.named(error)));
            }
            _ => steps.push(RecordStep::Write(member.into(), edit)),
        }
    }
    match obstacles.is_empty() {
        true => Ok(steps),
        false => Err(nothing_written(obstacles)),
    }
}

/// Returns the record which states that a member was new, unless it says so already or the member was not.
fn statement(
    set: &MemberSet,
    answers: &[MemberAnswer],
    answer: &MemberAnswer,
) -> Option<MemberRecordEdit> {
    let status = answer.status.as_ref().ok()?;
    let record = answer.member_record()?;
    let is_first = |other: &MemberAnswer| {
        let seen = other.member_record()?.observations.get(&answer.id)?;
        Some(!seen.changed && record.data_generation.continues(seen.data_generation))
    };
    let others = answers.iter().filter(|other| other.id != answer.id);
    let is_new = status.may_be_stated_new() && others.filter_map(is_first).all(|is_first| is_first);
    is_new.then(|| MemberRecordEdit {
        expected: Some(record.epoch()),
        set: set.clone(),
        generation: record.generation,
        run: status.run.clone(),
        durable: record.durable,
        data_generation: record.data_generation,
        age: Some(Duration::MAX),
        seen: Vec::new(),
    })
}

/// Returns whether a lock may have been granted at the member since its quorum was initialized. It had no vote
/// during the first wait, and each grant leaves a fence counter.
fn may_have_granted(answer: &MemberAnswer) -> Result<bool, Error> {
    let (Ok(status), Some(record)) = (&answer.status, answer.member_record()) else {
        return Ok(true);
    };
    let age = status
        .clock
        .as_micros()
        .saturating_sub(record.since.as_micros());
    let had_no_vote = u128::from(age) < wait_of(record.set.max_ttl).as_micros();
    match had_no_vote {
        true => Ok(false),
        false => answer.was_used.clone(),
    }
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
        member_record.set,
        member_record.configuration()
    )
}

/// The error has the kind of an obstacle that waiting does not mend, if there is one.
fn nothing_written(obstacles: Vec<MemberFailure>) -> Error {
    let kind = |failure: &MemberFailure| failure.error.kind();
    let lasting = |kind| {
        use ErrorKind::{InvalidInput, Misconfigured, Unsupported};
        matches!(kind, InvalidInput | Misconfigured | Unsupported)
    };
    let kind = match obstacles.iter().map(kind).any(lasting) {
        true => ErrorKind::InvalidInput,
        false => kind(&obstacles[0]),
    };
    Error::new(kind, "nothing was written").with_members(obstacles)
}
