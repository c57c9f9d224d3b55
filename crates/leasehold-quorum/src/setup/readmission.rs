//! How an operator gives a new record to a member that lost its own, when clients lack evidence.

use std::time::Duration;

use leasehold::ambient::Entropy;
use leasehold::{Card, CardEdit, Error, ErrorKind, Life, MemberFailure, MemberId, MemberSet};

use super::{MemberAnswer, refuse, trust_of};
use crate::trust::{Distrust, Trust};

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
) -> Result<Option<CardEdit>, Error> {
    check_member(set, id)?;
    let contradictions = contradictions(answers, &trust_of(set, answers));
    if !contradictions.is_empty() {
        let text = format!("{id} was not readmitted, because the members contradict each other");
        return Err(Error::new(ErrorKind::InvalidInput, text).with_members(contradictions));
    }
    let Some(answer) = answers.iter().find(|answer| answer.id == *id) else {
        return refuse(format!("{id} was not asked"));
    };
    let presence = answer.status.as_ref();
    let presence = presence.map_err(|error| answer.named(error.clone()))?;
    if presence.card.as_ref().is_some_and(Card::is_formed) {
        return Ok(None);
    }
    let records = answers.iter().filter_map(|answer| {
        let card = answer.status.as_ref().ok()?.card.as_ref()?;
        card.is_formed().then_some((&answer.id, card))
    });
    let records: Vec<(&MemberId, &Card)> = records.collect();
    let Some(generation) = records.iter().map(|(_, card)| card.generation).max() else {
        return refuse(format!(
            "{id} was not readmitted: no member that answers has a record of this quorum; a client \
             initializes it once all members answer"
        ));
    };
    let seen = records.iter().map(|(id, card)| ((*id).clone(), card.life));
    Ok(Some(CardEdit {
        expected: presence.card.as_ref().map(Card::mark),
        set: set.clone(),
        generation,
        run: presence.run.clone(),
        durable: presence.durable,
        life: Life::random(entropy),
        age: Some(Duration::ZERO),
        seen: seen.collect(),
    }))
}

/// Returns the members that answered and cannot be in this quorum.
fn contradictions(answers: &[MemberAnswer], trust: &Trust) -> Vec<MemberFailure> {
    let contradiction = |(member, answer): (usize, &MemberAnswer)| match trust.may_ask(member) {
        Ok(()) | Err(Distrust::NotFormed { .. }) => None,
        Err(distrust) => {
            let error = answer.named(distrust.error());
            Some(MemberFailure::new(answer.id.clone(), error))
        }
    };
    answers
        .iter()
        .enumerate()
        .filter_map(contradiction)
        .collect()
}
