use std::time::Duration;

use super::MemoryStore;
use crate::BoxFuture;
use crate::attempt::{Attempt, Release, Renewal};
use crate::card::{CardEdit, Life};
use crate::claim::{Claim, Held};
use crate::error::Error;
use crate::fence::Fence;
use crate::key::Key;
use crate::member::{Member, MemberId, Presence, Sampled, Seal};
use crate::owner::Owner;
use crate::queue::{Departure, Ear, Turn};

impl Member for MemoryStore {
    fn id(&self) -> &MemberId {
        &self.id
    }

    fn acquire_in_turn<'a>(
        &'a self,
        claim: &'a Claim,
        turn: &'a Turn,
    ) -> BoxFuture<'a, Result<Attempt, Error>> {
        Box::pin(async move {
            self.attempt(claim, |slot, step| slot.acquire_in_turn(claim, *turn, step))
        })
    }

    fn depart<'a>(
        &'a self,
        claim: &'a Claim,
        departure: &'a Departure,
    ) -> BoxFuture<'a, Result<Release, Error>> {
        Box::pin(async move {
            Ok(self.with_queue(&claim.key, |slot, step| slot.depart(claim, departure, step)))
        })
    }

    fn leave_queue<'a>(&'a self, key: &'a Key, waiter: Owner) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.with_queue(key, |slot, step| slot.leave_queue(waiter, step));
            Ok(())
        })
    }

    fn listen(&self, ear: Ear) {
        self.ears.add(ear);
    }

    fn seal<'a>(
        &'a self,
        claim: &'a Claim,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Sampled<Seal>, Error>> {
        Box::pin(async move {
            let answer = self.with_slot(&claim.key, |slot, _| slot.seal(claim, fence));
            Ok(self.sampled(answer))
        })
    }

    fn renew_sampled<'a>(
        &'a self,
        leases: &'a [Held],
    ) -> BoxFuture<'a, Result<Sampled<Vec<Renewal>>, Error>> {
        Box::pin(async move { Ok(self.sampled(self.renewals(leases))) })
    }

    fn heal<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            for held in leases {
                self.with_slot(&held.claim.key, |slot, now| slot.heal(held, now));
            }
            Ok(())
        })
    }

    fn presence(&self) -> BoxFuture<'_, Result<Presence, Error>> {
        Box::pin(async move {
            let (now, clock, data) = (self.ambient.clock.now(), self.wall(), self.data());
            let uptime = data
                .restarted
                .map_or(Duration::MAX, |start| now.since(start));
            let mut presence = Presence::new(data.run.clone(), clock, uptime);
            presence.durable = data.durable;
            presence.card = data.card.clone();
            Ok(presence)
        })
    }

    fn write_card<'a>(&'a self, edit: &'a CardEdit) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move { Ok(self.data().write_card(edit, self.wall())) })
    }

    fn witness<'a>(&'a self, seen: &'a [(MemberId, Life)]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.data().witness(seen, self.wall());
            Ok(())
        })
    }
}
