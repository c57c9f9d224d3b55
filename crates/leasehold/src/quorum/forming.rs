//! How an operator forms a set, by the word that nothing was ever held on its members. So they have
//! forgotten nothing, ever.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::ambient::Ambient;
use crate::card::{Card, Life, MemberSet};
use crate::error::{Error, ErrorKind};
use crate::key::Key;
use crate::member::{Member, MemberFailure, Presence};
use crate::optional;
use crate::quorum::limit::limited;
use crate::quorum::trust::{Between, CardStep, Distrust, Trust};

/// Writes the first cards, and then that the set is formed.
pub(crate) async fn init(
    members: &[Arc<dyn Member>],
    set: &MemberSet,
    ambient: &Ambient,
) -> Result<(), Error> {
    let ids = members.iter().map(|member| member.id().clone()).collect();
    let mut trust = Trust::new(ids, set.clone(), true);
    let seen = look(members, &mut trust, ambient).await;
    let has_its_card = |seen: &Result<Presence, Error>| {
        let card = seen.as_ref().ok().and_then(|seen| seen.card.as_ref());
        card.is_some_and(|card| card.set == *set && card.is_formed())
    };
    if seen.iter().all(has_its_card) {
        let text = "the quorum is already initialized; nothing to do";
        return Err(Error::new(ErrorKind::InvalidInput, text));
    }
    let obstacles = seen.iter().enumerate().map(|(place, seen)| {
        let verdict = trust.may_ask(place);
        obstacle(
            &members[place],
            seen.as_ref(),
            verdict.map_err(Clone::clone),
            ambient,
        )
    });
    let obstacles: Vec<_> = join_all(obstacles).await.into_iter().flatten().collect();
    if !obstacles.is_empty() {
        return Err(nothing_written(obstacles));
    }
    let mut draw = || Life::random(&*ambient.entropy);
    let first = trust.form(&mut draw, |_| Some(Duration::MAX));
    write(members, first, ambient).await?;
    for seen in look(members, &mut trust, ambient).await {
        seen?;
    }
    write(members, trust.card_steps(&mut draw), ambient).await
}

/// Asks every member how it is, and lets `trust` know.
pub(super) async fn look(
    members: &[Arc<dyn Member>],
    trust: &mut Trust,
    ambient: &Ambient,
) -> Vec<Result<Presence, Error>> {
    let asking = members.iter().map(|member| async {
        let sent = ambient.clock.now();
        let presence = limited(ambient, member.presence()).await;
        let received = ambient.clock.now();
        (presence, Between { sent, received })
    });
    let answers = join_all(asking).await.into_iter().enumerate();
    let seen = answers.map(|(place, (presence, at))| {
        let presence = presence.map_err(|error| named(&members[place], error))?;
        trust.present(place, presence.clone(), at);
        Ok(presence)
    });
    seen.collect()
}

/// Why a member cannot be in a new set, if so.
async fn obstacle(
    member: &Arc<dyn Member>,
    seen: Result<&Presence, &Error>,
    verdict: Result<(), Distrust>,
    ambient: &Ambient,
) -> Option<MemberFailure> {
    let refuse = |text: String| Error::new(ErrorKind::InvalidInput, text);
    let error = match (seen, verdict) {
        (Err(error), _) => error.clone(),
        (
            Ok(Presence {
                card: Some(card), ..
            }),
            _,
        ) => refuse(has_a_card(card)),
        // Nobody has a card: that is what it is about.
        (Ok(_), Ok(()) | Err(Distrust::NotFormed { .. })) => {
            match first_lock(member, ambient).await {
                Ok(held) => refuse(format!(
                    "it holds lock {:?}; wait until it is released",
                    held?.as_str()
                )),
                Err(error) => error,
            }
        }
        (Ok(_), Err(distrust)) => distrust.error(),
    };
    Some(MemberFailure::new(
        member.id().clone(),
        named(member, error),
    ))
}

/// A lock that `member` holds, if there is any. A member that cannot list its locks may hold one.
pub(super) async fn first_lock(
    member: &Arc<dyn Member>,
    ambient: &Ambient,
) -> Result<Option<Key>, Error> {
    let held = optional::inspection(&**member)?.list("", 1);
    Ok(limited(ambient, held).await?.into_iter().next())
}

fn has_a_card(card: &Card) -> String {
    format!(
        "already belongs to the quorum {} (generation {})",
        card.set, card.generation
    )
}

/// What waiting does not mend is what the error is about.
fn nothing_written(obstacles: Vec<MemberFailure>) -> Error {
    let kind = |failure: &MemberFailure| failure.error.kind();
    let lasting =
        |kind: &ErrorKind| matches!(kind, ErrorKind::InvalidInput | ErrorKind::Unsupported);
    let kind = match obstacles.iter().map(kind).any(|kind| lasting(&kind)) {
        true => ErrorKind::InvalidInput,
        false => kind(&obstacles[0]),
    };
    Error::new(kind, "nothing was written").with_members(obstacles)
}

async fn write(
    members: &[Arc<dyn Member>],
    steps: Vec<CardStep>,
    ambient: &Ambient,
) -> Result<(), Error> {
    let writing = steps.into_iter().map(|step| async move {
        let CardStep::Write(place, edit) = step else {
            return Ok(());
        };
        let member = &members[place];
        let text = "was initialized by another client meanwhile; try again";
        match limited(ambient, member.write_card(&edit)).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(named(member, Error::new(ErrorKind::InvalidInput, text))),
            Err(error) => Err(named(member, error)),
        }
    });
    join_all(writing).await.into_iter().collect()
}

pub(super) fn named(member: &Arc<dyn Member>, error: Error) -> Error {
    error.with_store(member.id().as_str())
}
