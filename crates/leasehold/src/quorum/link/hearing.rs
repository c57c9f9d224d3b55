//! What a member tells without being asked, and what is done about it.

use std::sync::Arc;
use std::time::Duration;

use crate::attempt::Attempt;
use crate::background;
use crate::claim::Claim;
use crate::key::Key;
use crate::member::RESERVATION;
use crate::owner::Owner;
use crate::queue::{Heard, Hint};
use crate::quorum::link::freeing::FOLLOW_UP_PAUSE;
use crate::quorum::link::{Asking, Link};
use crate::quorum::traces::FOLLOW_UP_MAX;
use crate::quorum::waiting::{Held, Vigil};

impl Link {
    /// Sees to it that the member's hints are heard.
    pub(super) fn listen(self: &Arc<Self>) {
        self.listening.call_once(|| {
            let link = Arc::downgrade(self);
            self.member.listen(Box::new(move |heard| {
                let Some(link) = link.upgrade() else {
                    return false;
                };
                match heard {
                    Heard::Hint(hint) => link.waits.hear(link.place, hint),
                    Heard::Deaf => {
                        link.waits.deaf(link.place);
                        true
                    }
                }
            }));
        });
    }

    /// Hands on what is reserved for a wait that is over. Where that fails the reservation lapses.
    pub(crate) async fn pass_on(self: &Arc<Self>, hint: Hint) {
        let waiter = hint.waiter;
        let client = waiter.client();
        tracing::debug!(key = %hint.key, %client, "a turn that is not needed is passed on");
        self.leave_queue(&hint.key, waiter).await;
    }

    /// Takes a lock that is held on a majority here too, where its previous holder was slow to
    /// leave, and raises the counter to its fence, as healing does. A release that comes meanwhile
    /// waits for the answer.
    pub(crate) async fn take_too(self: &Arc<Self>, held: Held, vigil: Arc<Vigil>) {
        let Held { claim, fence } = held;
        let under_way = self.state().traces.being_asked(claim.owner);
        if let Some(answered) = under_way {
            answered.cancelled().await;
        }
        // Out of the queue it has what was handed over: by an attempt that was on its way already.
        if !vigil.is_queued(self.place) || self.is_open().is_err() {
            return;
        }
        // While it is held: a release that begins after that waits for this answer.
        let announce = |claim: &Arc<Claim>| (self.announce(claim.owner), Arc::clone(claim));
        let Some((announced, claim)) = vigil.while_held(claim.owner, announce) else {
            return;
        };
        let limit = RESERVATION.min(claim.limit());
        let asking = Asking::InTurn(vigil);
        let taken = self.acquire(&claim, &asking, limit, announced).await;
        if taken.is_ok_and(|dated| matches!(dated.answer, Attempt::Granted(_))) {
            // Where it fails, this member's lease counts as any that a straggler granted. Where the
            // number is taken the counter is as high as it must be.
            let _ = self.seal(&claim, fence, limit).await;
        }
    }

    /// Takes a waiter out of the member's queue, in the background: where it does not answer, until
    /// it does, or has forgotten its queue. What it tells that waiter meanwhile is passed on.
    pub(crate) fn start_leaving(self: &Arc<Self>, vigil: &Vigil) {
        let untried = self.untried.token();
        vigil.leaves_queue(self.place);
        let (link, key, waiter) = (Arc::clone(self), vigil.key.clone(), vigil.ticket.waiter);
        background::spawn(async move {
            let clock = &link.ambient.clock;
            let end = clock.now() + QUEUE_KEPT;
            let mut left = link.leave_queue(&key, waiter).await;
            drop(untried);
            let leaving = link.leaving.token();
            while !left && clock.now() < end && link.leaving.len() <= FOLLOW_UP_MAX {
                let pause = link
                    .ambient
                    .random_span(FOLLOW_UP_PAUSE / 2, FOLLOW_UP_PAUSE);
                clock.sleep_until(clock.now() + pause).await;
                left = link.leave_queue(&key, waiter).await;
            }
            drop(leaving);
        });
    }

    async fn leave_queue(self: &Arc<Self>, key: &Key, waiter: Owner) -> bool {
        let leaving = self.member.leave_queue(key, waiter);
        self.heard().is_ok() && self.request(LEAVE_LIMIT, leaving).await.is_ok()
    }
}

/// As long as leaving may take: no longer than a reservation stands.
const LEAVE_LIMIT: Duration = RESERVATION;

/// How long members keep a queue that nobody asks about.
const QUEUE_KEPT: Duration = Duration::from_secs(30);
