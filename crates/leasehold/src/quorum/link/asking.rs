//! What a member is asked, and whether its answers count.

use std::sync::Arc;
use std::time::Duration;

use crate::BoxFuture;
use crate::attempt::{Attempt, Renewal};
use crate::breaking::{BreakRecord, Broken};
use crate::claim::{Claim, Held};
use crate::clock::{self, BootInstant};
use crate::error::Error;
use crate::fence::Fence;
use crate::holder::Holder;
use crate::key::Key;
use crate::member::{Incarnation, MemberFailure, Sampled, Seal};
use crate::optional;
use crate::pattern::Pattern;
use crate::queue::{Turn, Waiter};
use crate::quorum::link::freeing::Announced;
use crate::quorum::link::{Link, unanswered};
use crate::quorum::traces::Left;
use crate::quorum::trust::Distrust;
use crate::quorum::waiting::Vigil;
use crate::survey::Survey;

/// An answer, with what decides whether it counts.
#[derive(Debug)]
pub(crate) struct Dated<T> {
    pub(crate) answer: T,
    /// When it was asked for.
    sent: BootInstant,
    incarnation: Option<Incarnation>,
}

/// How a member is asked for a lock.
#[derive(Clone, Debug)]
pub(crate) enum Asking {
    /// As if nobody waited: what is reserved is not to be had.
    Plainly,
    /// By the ticket of a wait.
    InTurn(Arc<Vigil>),
    /// Ahead of everybody who waits.
    Barging,
}

impl Link {
    /// Asks the member to grant the claim, whose owner was announced; before, how it is, if that
    /// is not known yet.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        claim: &Claim,
        asking: &Asking,
        limit: Duration,
        mut announced: Announced,
    ) -> Result<Dated<Attempt>, Error> {
        if let Err(obstacle) = self.may_ask(limit).await {
            announced.left = Left::Nothing;
            self.state().traces.not_asked(claim.owner);
            return Err(obstacle);
        }
        let sent = self.ambient.clock.now();
        let answer = match asking {
            Asking::Plainly => self.request(limit, self.member.acquire(claim)).await,
            Asking::Barging => self.in_turn(claim, &Turn::Barging, limit).await,
            Asking::InTurn(vigil) => {
                self.listen();
                let heirs = self.waits.heirs(&vigil.key, vigil.ticket.waiter.client());
                vigil.asking(self.place, heirs);
                let answer = self.in_turn(claim, &vigil.turn(), limit).await;
                vigil.answered(self.place, &answer, &self.ambient);
                answer
            }
        };
        announced.left = match &answer {
            Ok(Attempt::Granted(_)) => Left::Lease,
            // Its waiter is in the queue, as it wants to be.
            Ok(Attempt::Busy(_)) => Left::Nothing,
            Err(error) => error.effect().into(),
        };
        let answer = answer?;
        let sample = match &answer {
            Attempt::Granted(grant) => &grant.sample,
            Attempt::Busy(busy) => &busy.sample,
        };
        if let Some(sample) = sample {
            self.roster.sample(self.place, sample, sent);
            self.waits.read_clock(self.place, sample.clock, sent);
        }
        let incarnation = sample.as_ref().map(|sample| sample.incarnation.clone());
        Ok(Dated {
            answer,
            sent,
            incarnation,
        })
    }

    async fn in_turn(
        self: &Arc<Self>,
        claim: &Claim,
        turn: &Turn,
        limit: Duration,
    ) -> Result<Attempt, Error> {
        self.request(limit, self.member.acquire_in_turn(claim, turn))
            .await
    }

    pub(crate) async fn seal(
        self: &Arc<Self>,
        claim: &Claim,
        fence: Fence,
        limit: Duration,
    ) -> Result<Dated<Seal>, Error> {
        self.is_open()?;
        let sent = self.ambient.clock.now();
        let sealed = self.request(limit, self.member.seal(claim, fence)).await?;
        Ok(self.dated(sealed, sent))
    }

    pub(crate) async fn renew(
        self: &Arc<Self>,
        leases: &[Held],
        limit: Duration,
    ) -> Result<Dated<Vec<Renewal>>, Error> {
        self.is_open()?;
        let sent = self.ambient.clock.now();
        let renewed = self.request(limit, self.member.renew_sampled(leases));
        Ok(self.dated(renewed.await?, sent))
    }

    /// Whether an answer of this member counts.
    pub(crate) fn counts<T>(&self, dated: &Dated<T>) -> Result<(), Distrust> {
        self.roster
            .counts(self.place, dated.sent, dated.incarnation.as_ref())
    }

    /// Why this member's answer to an attempt did not count, if so.
    pub(crate) fn failure(&self, answer: Result<Dated<Attempt>, Error>) -> Option<MemberFailure> {
        let id = self.member.id();
        let now = self.ambient.clock.now();
        match answer {
            Err(error) => Some(MemberFailure::new(id.clone(), error)),
            Ok(dated) if matches!(dated.answer, Attempt::Busy(_)) => None,
            Ok(dated) => Some(self.counts(&dated).err()?.failure(id, now)),
        }
    }

    /// Why this member's answer does not count, as an error, if so.
    pub(crate) fn doubt<T>(&self, dated: &Dated<T>) -> Option<Error> {
        let distrust = self.counts(dated).err()?;
        Some(self.refusal(&distrust).with_unknown_effect())
    }

    pub(crate) async fn holders(self: &Arc<Self>, key: &Key) -> Result<Vec<Holder>, Error> {
        self.heard()?;
        let inspection = optional::inspection(&*self.member)?;
        self.request(LOOK_LIMIT, inspection.holders(key)).await
    }

    pub(crate) async fn waiters(self: &Arc<Self>, key: &Key) -> Result<Vec<Waiter>, Error> {
        self.heard()?;
        let inspection = optional::inspection(&*self.member)?;
        self.request(LOOK_LIMIT, inspection.waiters(key)).await
    }

    pub(crate) async fn list(self: &Arc<Self>, prefix: &str) -> Result<Vec<Key>, Error> {
        let inspection = optional::inspection(&*self.member)?;
        self.is_there().await?;
        self.overview(inspection.list(prefix, usize::MAX)).await
    }

    pub(crate) async fn survey(
        self: &Arc<Self>,
        pattern: &Pattern,
        limit: usize,
    ) -> Result<Survey, Error> {
        let inspection = optional::inspection(&*self.member)?;
        self.is_there().await?;
        self.overview(inspection.survey(pattern, limit)).await
    }

    /// Fails soon where the member does not answer at all, whatever it says otherwise.
    async fn is_there(self: &Arc<Self>) -> Result<(), Error> {
        self.heard()?;
        match self.request(LOOK_LIMIT, self.member.presence()).await {
            Err(error) if error.is_unreachable() => Err(error),
            _ => Ok(()),
        }
    }

    /// Has the member look at all that it has, in many short steps: that all of them together take long
    /// does not say that it is silent, and no guard may lose it for that.
    async fn overview<T>(&self, look: BoxFuture<'_, Result<T, Error>>) -> Result<T, Error> {
        let clock = &*self.ambient.clock;
        let answer = clock::within(clock, clock.now() + OVERVIEW_LIMIT, look).await;
        answer
            .unwrap_or_else(|| Err(unanswered(format!("no answer within {OVERVIEW_LIMIT:.0?}"))))
            .map_err(|error| error.with_store(self.member.id().as_str()))
    }

    /// Also where its answers do not count: what it keeps of the break does.
    pub(crate) async fn break_lease(
        self: &Arc<Self>,
        key: &Key,
        record: &BreakRecord,
    ) -> Result<Broken, Error> {
        self.may_ask(LOOK_LIMIT).await?;
        let admin = optional::admin(&*self.member)?;
        self.request(LOOK_LIMIT, admin.break_lease(key, record))
            .await
    }

    pub(crate) async fn last_break(
        self: &Arc<Self>,
        key: &Key,
    ) -> Result<Option<BreakRecord>, Error> {
        self.heard()?;
        let admin = optional::admin(&*self.member)?;
        self.request(LOOK_LIMIT, admin.last_break(key)).await
    }

    fn dated<T>(self: &Arc<Self>, sampled: Sampled<T>, sent: BootInstant) -> Dated<T> {
        self.roster.sample(self.place, &sampled.sample, sent);
        Dated {
            answer: sampled.answer,
            sent,
            incarnation: Some(sampled.sample.incarnation),
        }
    }
}

/// For people who look: they would rather wait a moment than see nothing.
const LOOK_LIMIT: Duration = Duration::from_secs(1);
const OVERVIEW_LIMIT: Duration = Duration::from_secs(120);
