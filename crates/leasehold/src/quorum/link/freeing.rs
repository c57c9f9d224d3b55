//! What attempts leave at a member, and who frees it; what a member forgot, and who puts it back.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::attempt::Release;
use crate::background;
use crate::claim::{Claim, Held};
use crate::clock;
use crate::error::{Effect, Error};
use crate::owner::Owner;
use crate::queue::Departure;
use crate::quorum::link::{Link, unanswered};
use crate::quorum::traces::Freeing;

/// An attempt that was announced. Dropped without an answer, as when the member's code panics, it
/// leaves behind that nobody knows how far it got.
#[derive(Debug)]
pub(crate) struct Announced {
    link: Arc<Link>,
    owner: Owner,
    pub(super) doubtful: bool,
    /// Dropped last, so that whoever waits for the answer finds what it left.
    _answered: DropGuard,
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.link.state().traces.answered(self.owner, self.doubtful);
    }
}

impl Link {
    /// Notes that `owner` is about to ask here, so that a release that comes next waits for it.
    pub(crate) fn announce(self: &Arc<Self>, owner: Owner) -> Announced {
        let answered = CancellationToken::new();
        self.state().traces.asking(owner, answered.clone());
        Announced {
            link: Arc::clone(self),
            owner,
            doubtful: true,
            _answered: answered.drop_guard(),
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
        let doubtful = healed
            .as_ref()
            .is_err_and(|error| error.effect() == Effect::Unknown);
        for mut announced in announced {
            announced.doubtful = doubtful;
            drop(announced);
        }
    }

    /// Resolves once every release so far has been tried here, or after [`SETTLE_MAX`] on a member
    /// that seems not to answer: the end of a program does not wait for it.
    pub(crate) async fn settle(&self) {
        if self.heard().is_ok() {
            let clock = &*self.ambient.clock;
            let _ = clock::within(clock, clock.now() + SETTLE_MAX, self.untried.wait()).await;
        }
    }

    /// Frees the claim in the background, as [`free`](Self::free) does.
    pub(crate) fn start_freeing(
        self: &Arc<Self>,
        claim: &Arc<Claim>,
        departure: impl FnOnce() -> Departure + Send + 'static,
        limit: Duration,
        first: impl FnOnce(Result<Release, Error>) + Send + 'static,
    ) {
        let untried = self.untried.token();
        let first = move |outcome| {
            first(outcome);
            drop(untried);
        };
        background::spawn(Arc::clone(self).free(Arc::clone(claim), departure, limit, first));
    }

    /// Frees the claim here, after its own attempt has been answered. Where the attempt was never
    /// answered the release is repeated: until it gets through, and once more before the TTL is
    /// over, as the attempt may take effect that late. `first` hears of the first try.
    async fn free(
        self: Arc<Self>,
        claim: Arc<Claim>,
        departure: impl FnOnce() -> Departure + Send,
        limit: Duration,
        first: impl FnOnce(Result<Release, Error>) + Send,
    ) {
        let doubtful = loop {
            let next = self.state().traces.begin_freeing(claim.owner);
            match next {
                Freeing::Begin { doubtful } => break doubtful,
                Freeing::NotNeeded => return first(Ok(Release::WasLost)),
                Freeing::AlreadyBegun => {
                    let begun = unanswered("is being freed already");
                    return first(Err(begun.with_unknown_effect()));
                }
                Freeing::AfterAnswer(answered) => answered.cancelled().await,
            }
        };
        let clock = &self.ambient.clock;
        let end = clock.now() + claim.ttl;
        let outcome = match self.heard() {
            Ok(()) => {
                // Not before: by now its waiter may have left.
                let departure = departure();
                let departing = self.member.depart(&claim, &departure);
                self.request(limit, departing).await
            }
            Err(silent) => Err(silent),
        };
        let mut answered = outcome.is_ok();
        first(outcome);
        while !answered && clock.now() < end && self.state().traces.may_follow_up() {
            let pause = self
                .ambient
                .random_span(FOLLOW_UP_PAUSE / 2, FOLLOW_UP_PAUSE);
            clock.sleep_until(clock.now() + pause).await;
            if self.heard().is_ok() {
                answered = self
                    .request(limit, self.member.release(&claim))
                    .await
                    .is_ok();
            }
        }
        if doubtful && self.state().traces.may_follow_up() {
            clock.sleep_until(end - claim.ttl / 10).await;
            let _ = self.request(limit, self.member.release(&claim)).await;
        }
        self.state().traces.freed(claim.owner);
    }
}

const SETTLE_MAX: Duration = Duration::from_millis(100);
pub(super) const FOLLOW_UP_PAUSE: Duration = Duration::from_millis(500);
