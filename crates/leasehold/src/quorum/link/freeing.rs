//! What attempts leave at a member, and who frees it; what a member forgot, and who puts it back.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::attempt::Release;
use crate::background;
use crate::claim::{Claim, Held};
use crate::clock::{self, BootInstant};
use crate::error::{Effect, Error};
use crate::owner::Owner;
use crate::queue::Departure;
use crate::quorum::link::{Link, unanswered};
use crate::quorum::traces::{Freeing, Left};
use crate::quorum::under_way::unbroken;
use crate::quorum::waiting::Vigil;

/// An attempt that was announced. Dropped without an answer, as when the member's code panics, it
/// leaves behind that nobody knows how far it got.
#[derive(Debug)]
pub(crate) struct Announced {
    link: Arc<Link>,
    owner: Owner,
    pub(super) left: Left,
}

impl Drop for Announced {
    fn drop(&mut self) {
        let answered = self.link.state().traces.answered(self.owner, self.left);
        // Last, so that whoever waits for the answer finds what it left.
        if let Some(answered) = answered {
            answered.cancel();
        }
    }
}

impl Link {
    /// Notes that `owner` is about to ask here, so that a release that comes next waits for it.
    pub(crate) fn announce(self: &Arc<Self>, owner: Owner) -> Announced {
        self.state().traces.asking(owner);
        Announced {
            link: Arc::clone(self),
            owner,
            left: Left::Unknown,
        }
    }

    /// Notes that these leases are being renewed: until [`end_renewing`](Self::end_renewing), or
    /// until one is released, they may be put back.
    pub(crate) fn begin_renewing(&self, leases: &[Held]) {
        let mut state = self.state();
        for held in leases {
            state.traces.renewing(&held.claim);
        }
    }

    pub(crate) fn end_renewing(&self, leases: &[Held]) {
        let mut state = self.state();
        for held in leases {
            state.traces.renewed(held.claim.owner);
        }
    }

    /// Renewals under way put nothing of this owner back.
    pub(crate) fn heal_no_more(&self, owner: Owner) {
        self.state().traces.renewed(owner);
    }

    /// Has the end of a program wait for an attempt that is under way still: nobody puts back later what
    /// this member does not have.
    pub(crate) fn see_through(&self, owner: Owner) {
        let answered = self.state().traces.being_asked(owner);
        if let Some(answered) = answered {
            let untried = self.untried.token();
            background::spawn(async move {
                answered.cancelled().await;
                drop(untried);
            });
        }
    }

    /// Puts leases back that are still being renewed, where their keys are free. A release that
    /// comes meanwhile waits for the answer.
    pub(crate) async fn heal(self: &Arc<Self>, leases: Vec<Held>, limit: Duration) {
        let may = |held: &Held| self.state().traces.is_renewing(&held.claim);
        let leases: Vec<Held> = leases.into_iter().filter(may).collect();
        if leases.is_empty() || self.is_open().is_err() {
            return;
        }
        let announced: Vec<Announced> = leases
            .iter()
            .map(|held| self.announce(held.claim.owner))
            .collect();
        let healed = self.request(limit, self.member.heal(&leases)).await;
        // If not by this, then by what it was granted with.
        let left = match &healed {
            Err(error) if error.effect() == Effect::Unknown => Left::Unknown,
            _ => Left::Lease,
        };
        for mut announced in announced {
            announced.left = left;
            drop(announced);
        }
    }

    /// Resolves once every release so far has been tried here, and whatever is to be seen through is
    /// over; or after [`SETTLE_MAX`] on a member that seems not to answer: the end of a program does not
    /// wait for it.
    pub(crate) async fn settle(&self) {
        if self.heard().is_ok() {
            let clock = &*self.ambient.clock;
            let _ = clock::within(clock, clock.now() + SETTLE_MAX, self.untried.wait()).await;
        }
    }

    /// Frees the claim here, after its own attempt has been answered; `wait` is over with it. Resolves
    /// with the first try. Where the attempt was never answered the release is repeated in the
    /// background: until it gets through, and once more before the TTL is over, as the attempt may take
    /// effect that late.
    pub(crate) fn free(
        self: &Arc<Self>,
        claim: &Arc<Claim>,
        departure: impl FnOnce() -> Departure + Send + 'static,
        wait: Option<Arc<Vigil>>,
        limit: Duration,
    ) -> impl Future<Output = Result<Release, Error>> + Send + 'static {
        let (link, claim) = (Arc::clone(self), Arc::clone(claim));
        // From now on, not from when it is first polled.
        let untried = self.untried.token();
        async move {
            let outcome = link.try_to_free(claim, departure, limit).await;
            // By now the attempt has been answered here.
            if let Some(vigil) = wait.filter(|vigil| vigil.is_queued(link.place)) {
                link.start_leaving(&vigil);
            }
            drop(untried);
            outcome
        }
    }

    async fn try_to_free(
        self: &Arc<Self>,
        claim: Arc<Claim>,
        departure: impl FnOnce() -> Departure,
        limit: Duration,
    ) -> Result<Release, Error> {
        let doubtful = loop {
            let next = self.state().traces.begin_freeing(claim.owner);
            match next {
                Freeing::Begin { doubtful } => break doubtful,
                Freeing::NotNeeded => return Ok(Release::WasLost),
                Freeing::AlreadyBegun => {
                    let begun = unanswered("is being freed already");
                    return Err(begun.with_unknown_effect());
                }
                Freeing::AfterAnswer(answered) => answered.cancelled().await,
            }
        };
        let end = self.ambient.clock.now() + claim.ttl;
        let outcome = match self.heard() {
            Ok(()) => {
                // Not before: by now its waiter may have left.
                let departure = departure();
                let departing = self.member.depart(&claim, &departure);
                unbroken(self.request(limit, departing)).await
            }
            Err(silent) => Err(silent),
        };
        if outcome.is_ok() && !doubtful {
            self.state().traces.freed(claim.owner);
        } else {
            let freed = outcome.is_ok();
            let link = Arc::clone(self);
            background::spawn(
                async move { link.follow_up(&claim, limit, end, freed, doubtful).await },
            );
        }
        outcome
    }

    async fn follow_up(
        self: &Arc<Self>,
        claim: &Claim,
        limit: Duration,
        end: BootInstant,
        mut freed: bool,
        doubtful: bool,
    ) {
        let clock = &self.ambient.clock;
        while !freed && clock.now() < end && self.state().traces.may_follow_up() {
            let pause = self
                .ambient
                .random_span(FOLLOW_UP_PAUSE / 2, FOLLOW_UP_PAUSE);
            clock.sleep_until(clock.now() + pause).await;
            if self.heard().is_ok() {
                let releasing = self.request(limit, self.member.release(claim));
                freed = unbroken(releasing).await.is_ok();
            }
        }
        if doubtful && self.state().traces.may_follow_up() {
            clock.sleep_until(end - claim.ttl / 10).await;
            let _ = unbroken(self.request(limit, self.member.release(claim))).await;
        }
        self.state().traces.freed(claim.owner);
    }
}

const SETTLE_MAX: Duration = Duration::from_millis(100);
pub(super) const FOLLOW_UP_PAUSE: Duration = Duration::from_millis(500);
