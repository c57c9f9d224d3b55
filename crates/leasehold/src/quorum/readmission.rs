//! How an operator gives a member that lost its record a new one, where clients lack evidence.

use std::sync::Arc;
use std::time::Duration;

use crate::ambient::Ambient;
use crate::card::{Card, CardEdit, Life, MemberSet};
use crate::error::{Error, ErrorKind};
use crate::member::{Member, MemberFailure, MemberId, Presence};
use crate::quorum::forming::{look, named};
use crate::quorum::limit::limited;
use crate::quorum::trust::{Distrust, Trust};

/// Writes a new record on the member, unless it has one.
pub(crate) async fn readmit(
    members: &[Arc<dyn Member>],
    set: &MemberSet,
    id: &MemberId,
    ambient: &Ambient,
) -> Result<bool, Error> {
    let Some(place) = members.iter().position(|member| member.id() == id) else {
        return refuse(format!("{id} is not a member of this quorum: {set}"));
    };
    let ids: Vec<_> = members.iter().map(|member| member.id().clone()).collect();
    let mut trust = Trust::new(ids, set.clone(), true);
    let seen = look(members, &mut trust, ambient).await;
    let contradictions = contradictions(members, &trust);
    if !contradictions.is_empty() {
        let text = format!("{id} was not readmitted, because the members contradict each other");
        return Err(Error::new(ErrorKind::InvalidInput, text).with_members(contradictions));
    }
    let presence = seen[place].as_ref().map_err(Error::clone)?;
    if presence.card.as_ref().is_some_and(Card::is_formed) {
        return Ok(false);
    }
    let Some(edit) = first_edit(members, &seen, presence, set, ambient) else {
        return refuse(format!(
            "{id} was not readmitted: no member that answers has a record of this quorum; a client \
             initializes it once all members answer"
        ));
    };
    let member = &members[place];
    let written = limited(ambient, member.write_card(&edit)).await;
    match written.map_err(|error| named(member, error))? {
        true => Ok(true),
        false => refuse(format!("{id} was given a record meanwhile: try again")),
    }
}

/// The members that answered and cannot be in this quorum.
fn contradictions(members: &[Arc<dyn Member>], trust: &Trust) -> Vec<MemberFailure> {
    let contradiction = |(place, member): (usize, &Arc<dyn Member>)| match trust.may_ask(place) {
        Ok(()) | Err(Distrust::NotFormed { .. }) => None,
        Err(distrust) => {
            let error = named(member, distrust.error());
            Some(MemberFailure::new(member.id().clone(), error))
        }
    };
    let members = members.iter().enumerate();
    members.filter_map(contradiction).collect()
}

/// A new life, which begins now, in the latest generation that a member knows.
fn first_edit(
    members: &[Arc<dyn Member>],
    seen: &[Result<Presence, Error>],
    presence: &Presence,
    set: &MemberSet,
    ambient: &Ambient,
) -> Option<CardEdit> {
    let cards = members.iter().zip(seen).filter_map(|(member, seen)| {
        let card = seen.as_ref().ok()?.card.as_ref()?;
        card.is_formed().then_some((member.id(), card))
    });
    let cards: Vec<(&MemberId, &Card)> = cards.collect();
    let generation = cards.iter().map(|(_, card)| card.generation).max()?;
    Some(CardEdit {
        expected: presence.card.as_ref().map(Card::mark),
        set: set.clone(),
        generation,
        run: presence.run.clone(),
        durable: presence.durable,
        life: Life::random(&*ambient.entropy),
        age: Some(Duration::ZERO),
        seen: cards
            .iter()
            .map(|(id, card)| ((*id).clone(), card.life))
            .collect(),
    })
}

fn refuse<T>(text: String) -> Result<T, Error> {
    Err(Error::new(ErrorKind::InvalidInput, text))
}
