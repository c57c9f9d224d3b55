//! How a set is changed: one member at a time, so that each majority of the new set shares a member
//! with each majority of the old one, and not again before every lease of the old set is over.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::ambient::Ambient;
use crate::card::{Card, CardEdit, Life, MemberSet};
use crate::error::{Error, ErrorKind};
use crate::member::{Member, MemberId, Presence};
use crate::quorum::forming::first_lock;
use crate::quorum::limit::limited;
use crate::quorum::trust::{difference, old_enough, wait_of};

/// One step from a set to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    pub(crate) old: &'a MemberSet,
    pub(crate) new: &'a MemberSet,
}

impl Change<'_> {
    /// Whether this is a step that may be taken at all.
    fn check(&self) -> Result<(), Error> {
        let (old, new) = (self.old, self.new);
        if (old.max_ttl, old.clock_tolerance) != (new.max_ttl, new.clock_tolerance) {
            return refuse(format!(
                "a change of members cannot change the limits: {old} is not {new}"
            ));
        }
        let joining = new.ids.iter().filter(|id| !old.ids.contains(id)).count();
        let leaving = old.ids.iter().filter(|id| !new.ids.contains(id)).count();
        if joining + leaving != 1 {
            return refuse(format!(
                "{joining} servers would join and {leaving} leave; change one server at a time, then wait {:?}",
                wait_of(new.max_ttl)
            ));
        }
        if new.ids.len() < 3 {
            return refuse(format!(
                "refused: {} servers could not survive one failure; keep at least 3",
                new.ids.len()
            ));
        }
        Ok(())
    }

    /// What is to be written on the members' cards, `None` where it stands already.
    fn edits(
        &self,
        members: &[(MemberId, Presence)],
        draw: &mut dyn FnMut() -> Life,
    ) -> Result<Vec<Option<CardEdit>>, Error> {
        let mut generation = 0;
        for (id, presence) in members {
            self.check_member(id, presence)?;
            let card = presence.card.as_ref();
            let next = card.map_or(0, |card| card.generation + u64::from(card.set != *self.new));
            generation = generation.max(next);
        }
        let edit = |(id, presence): &(MemberId, Presence)| {
            let card = presence.card.as_ref();
            if card.is_some_and(|card| card.set == *self.new) {
                return None;
            }
            let stays = card.filter(|_| self.old.ids.contains(id));
            Some(CardEdit {
                expected: card.map(Card::mark),
                set: self.new.clone(),
                generation,
                run: presence.run.clone(),
                // Whether a member is still durable is for the next client to find out.
                durable: stays.map_or(presence.durable, |card| card.durable),
                life: stays.map_or_else(&mut *draw, |card| card.life),
                // Nobody needs to wait for a newcomer: those who stay remember for it.
                age: stays.is_none().then(|| old_enough(self.new.max_ttl)),
                seen: Vec::new(),
            })
        };
        Ok(members.iter().map(edit).collect())
    }

    fn check_member(&self, id: &MemberId, presence: &Presence) -> Result<(), Error> {
        if let Some(why) = &presence.unfit {
            return refuse(format!("{id} cannot be a member: {why}"));
        }
        let joins = !self.old.ids.contains(id);
        let Some(card) = &presence.card else {
            let text = format!(
                "{id} has lost its quorum record; a client writes a new one once the other members \
                 answer, or `leasehold members readmit {id}` does; then try again"
            );
            return if joins { Ok(()) } else { refuse(text) };
        };
        if card.set == *self.new {
            return Ok(());
        }
        if joins {
            return match card.set.ids.contains(id) {
                true => refuse(format!("{id} already belongs to the quorum {}", card.set)),
                false => Ok(()),
            };
        }
        if card.set != *self.old {
            return refuse(format!(
                "{id} belongs to another quorum: {}",
                difference(&card.set, self.old)
            ));
        }
        if !card.is_formed() {
            return refuse(format!(
                "{id}: its quorum is not initialized; run `leasehold init`"
            ));
        }
        if card.run != presence.run {
            return refuse(format!(
                "{id} restarted; let a client acquire a lock, then try again"
            ));
        }
        let changed = presence
            .clock
            .as_micros()
            .saturating_sub(card.changed.as_micros());
        let left =
            wait_of(self.new.max_ttl).saturating_sub(std::time::Duration::from_micros(changed));
        if card.generation > 1 && !left.is_zero() {
            return refuse(format!(
                "the quorum was changed recently, and earlier leases may still be valid; wait {left:.0?} \
                 more"
            ));
        }
        Ok(())
    }
}

/// Carries the change out: writes the new set on all its members, of which each must answer, and on
/// the one that leaves, if it does. Interrupted, it can be repeated.
pub(crate) async fn carry_out(
    change: Change<'_>,
    staying: &[Arc<dyn Member>],
    leaving: Option<&Arc<dyn Member>>,
    ambient: &Ambient,
) -> Result<(), Error> {
    change.check()?;
    let named = |member: &Arc<dyn Member>, error: Error| error.with_store(member.id().as_str());
    let asking = staying.iter().map(|member| async move {
        let presence = limited(ambient, member.presence()).await;
        let presence = presence.map_err(|error| named(member, error))?;
        if presence.card.is_none()
            && let Some(key) = first_lock(member, ambient).await?
        {
            return refuse(format!(
                "{} holds lock {:?}; wait until it is released",
                member.id(),
                key.as_str()
            ));
        }
        Ok((member.id().clone(), presence))
    });
    let known: Result<Vec<_>, Error> = join_all(asking).await.into_iter().collect();
    let mut draw = || Life::random(&*ambient.entropy);
    let edits = change.edits(&known?, &mut draw)?;
    for (member, edit) in staying.iter().zip(edits) {
        let Some(edit) = edit else { continue };
        let written = limited(ambient, member.write_card(&edit)).await;
        if !written.map_err(|error| named(member, error))? {
            let text = format!(
                "{}: its quorum record changed meanwhile; try again",
                member.id()
            );
            return refuse(text);
        }
    }
    if let Some(member) = leaving
        && let Err(error) = dismiss(change, member, ambient).await
    {
        // Its old card binds nobody: a majority has the new one.
        tracing::warn!(member = %member.id(), %error, "removed, but could not be told");
    }
    Ok(())
}

async fn dismiss(
    change: Change<'_>,
    member: &Arc<dyn Member>,
    ambient: &Ambient,
) -> Result<(), Error> {
    let presence = limited(ambient, member.presence()).await?;
    let Some(card) = presence.card.filter(|card| card.set == *change.old) else {
        return Ok(());
    };
    let edit = CardEdit {
        expected: Some(card.mark()),
        set: change.new.clone(),
        generation: card.generation + 1,
        run: card.run,
        durable: card.durable,
        life: card.life,
        age: None,
        seen: Vec::new(),
    };
    limited(ambient, member.write_card(&edit)).await.map(|_| ())
}

fn refuse<T>(text: String) -> Result<T, Error> {
    Err(Error::new(ErrorKind::InvalidInput, text))
}
