use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::BoxFuture;
use crate::ambient::Ambient;
use crate::attempt::{Attempt, Release, Renewal};
use crate::background;
use crate::claim::{Claim, Held};
use crate::clock::{self, BootInstant};
use crate::error::{Effect, Error, ErrorKind};
use crate::fence::Fence;
use crate::holder::Holder;
use crate::key::Key;
use crate::member::{Incarnation, Member, MemberFailure, Sampled, Seal};
use crate::owner::Owner;
use crate::quorum::roster::Roster;
use crate::quorum::traces::{Freeing, Traces};
use crate::quorum::trust::Distrust;

/// The quorum's way to one member: a limit on every request, silence remembered, and attempts
/// followed up until they are freed.
///
/// A member that let a request run into its limit is *silent*: until a probe gets through, requests
/// fail at once, so that it costs neither time nor memory.
#[derive(Debug)]
pub(crate) struct Link {
    /// The member's place in the roster.
    place: usize,
    member: Arc<dyn Member>,
    roster: Arc<Roster>,
    ambient: Ambient,
    /// Held while the member is asked how it is for the first time.
    meeting: tokio::sync::Mutex<()>,
    state: Mutex<LinkState>,
    /// Releases that have not been tried yet.
    untried: TaskTracker,
}

#[derive(Debug, Default)]
struct LinkState {
    silent: Option<Silence>,
    /// Whether the last request failed, so that a failure is logged once and not each time.
    failing: bool,
    traces: Traces,
}

#[derive(Clone, Debug)]
struct Silence {
    since: BootInstant,
    error: Error,
}

/// An answer, with what decides whether it counts.
#[derive(Debug)]
pub(crate) struct Dated<T> {
    pub(crate) answer: T,
    /// When it was asked for.
    sent: BootInstant,
    incarnation: Option<Incarnation>,
}

/// An attempt that was announced. Dropped without an answer, as when the member's code panics, it
/// leaves behind that nobody knows how far it got.
#[derive(Debug)]
pub(crate) struct Announced {
    link: Arc<Link>,
    owner: Owner,
    doubtful: bool,
    /// Closed last, so that whoever waits for the answer finds what it left.
    _answered: watch::Sender<()>,
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.link.state().traces.answered(self.owner, self.doubtful);
    }
}

impl Link {
    pub(crate) fn new(place: usize, roster: Arc<Roster>, ambient: Ambient) -> Arc<Self> {
        let untried = TaskTracker::new();
        // It only counts; closed, it can be waited for whenever it is empty.
        untried.close();
        Arc::new(Self {
            place,
            member: Arc::clone(&roster.members()[place]),
            roster,
            ambient,
            meeting: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            untried,
        })
    }

    pub(crate) fn member(&self) -> &Arc<dyn Member> {
        &self.member
    }

    /// Notes that `owner` is about to ask here, so that a release that comes next waits for it.
    pub(crate) fn announce(self: &Arc<Self>, owner: Owner) -> Announced {
        let (answered, asking) = watch::channel(());
        self.state().traces.asking(owner, asking);
        Announced {
            link: Arc::clone(self),
            owner,
            doubtful: true,
            _answered: answered,
        }
    }

    /// Asks the member to grant the claim, whose owner was announced; before, how it is, if that
    /// is not known yet.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        claim: &Claim,
        limit: Duration,
        mut announced: Announced,
    ) -> Result<Dated<Attempt>, Error> {
        if let Err(obstacle) = self.may_ask(limit).await {
            announced.doubtful = false;
            self.state().traces.not_asked(claim.owner);
            return Err(obstacle);
        }
        let sent = self.ambient.clock.now();
        let answer = self.request(limit, self.member.acquire(claim)).await;
        announced.doubtful = answer
            .as_ref()
            .is_err_and(|error| error.effect() == Effect::Unknown);
        let answer = answer?;
        let sample = match &answer {
            Attempt::Granted(grant) => &grant.sample,
            Attempt::Busy(busy) => &busy.sample,
        };
        if let Some(sample) = sample {
            self.roster.sample(self.place, sample, sent);
        }
        let incarnation = sample.as_ref().map(|sample| sample.incarnation.clone());
        Ok(Dated {
            answer,
            sent,
            incarnation,
        })
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

    /// Notes that these leases are being renewed: until [`end_renewing`](Self::end_renewing), or
    /// until one is released, they may be put back.
    pub(crate) fn begin_renewing(&self, leases: &[Held]) {
        let mut state = self.state();
        for held in leases {
            state.traces.renewing(held.claim.owner);
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
        let may = |held: &Held| self.state().traces.is_renewing(held.claim.owner);
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

    pub(crate) async fn holders(self: &Arc<Self>, key: &Key) -> Result<Vec<Holder>, Error> {
        self.heard()?;
        self.request(LOOK_LIMIT, self.member.holders(key)).await
    }

    pub(crate) async fn list(self: &Arc<Self>, prefix: &str) -> Result<Vec<Key>, Error> {
        self.heard()?;
        self.request(LIST_LIMIT, self.member.list(prefix, usize::MAX))
            .await
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
        limit: Duration,
        first: impl FnOnce(Result<Release, Error>) + Send + 'static,
    ) {
        let untried = self.untried.token();
        let first = move |outcome| {
            first(outcome);
            drop(untried);
        };
        background::spawn(Arc::clone(self).free(Arc::clone(claim), limit, first));
    }

    /// Frees the claim here, after its own attempt has been answered. Where the attempt was never
    /// answered the release is repeated: until it gets through, and once more before the TTL is
    /// over, as the attempt may take effect that late. `first` hears of the first try.
    async fn free(
        self: Arc<Self>,
        claim: Arc<Claim>,
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
                Freeing::AfterAnswer(mut answered) => {
                    // Never sent to: it fails when the attempt drops the sender, being over.
                    let _ = answered.changed().await;
                }
            }
        };
        let clock = &self.ambient.clock;
        let end = clock.now() + claim.ttl;
        let outcome = match self.heard() {
            Ok(()) => self.request(limit, self.member.release(&claim)).await,
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

    /// Meets the member, if that has not been done, and sees to it that it may be asked.
    async fn may_ask(self: &Arc<Self>, limit: Duration) -> Result<(), Error> {
        self.heard()?;
        let end = self.ambient.clock.now() + limit;
        if self.roster.is_stranger(self.place) {
            let _met = self.meeting.lock().await;
            if self.roster.is_stranger(self.place) {
                let sent = self.ambient.clock.now();
                let presence = self.request(limit, self.member.presence()).await;
                // Nothing of the attempt itself was sent.
                let presence = presence.map_err(Error::without_effect)?;
                self.roster.present(self.place, presence, sent);
            }
        }
        let asking = self.roster.may_ask(self.place);
        let verdict = clock::within(&*self.ambient.clock, end, asking).await;
        let obstacle = match verdict {
            Some(verdict) => verdict.err(),
            None => self.roster.obstacle(self.place),
        };
        obstacle.map_or(Ok(()), |distrust| Err(self.refusal(&distrust)))
    }

    /// Fails while the member is silent, or not one of this set.
    fn is_open(&self) -> Result<(), Error> {
        self.heard()?;
        match self.roster.obstacle(self.place) {
            Some(distrust) => Err(self.refusal(&distrust)),
            None => Ok(()),
        }
    }

    fn refusal(&self, distrust: &Distrust) -> Error {
        distrust.error().with_store(self.member.id().as_str())
    }

    fn dated<T>(self: &Arc<Self>, sampled: Sampled<T>, sent: BootInstant) -> Dated<T> {
        self.roster.sample(self.place, &sampled.sample, sent);
        Dated {
            answer: sampled.answer,
            sent,
            incarnation: Some(sampled.sample.incarnation),
        }
    }

    async fn request<T>(
        self: &Arc<Self>,
        limit: Duration,
        request: BoxFuture<'_, Result<T, Error>>,
    ) -> Result<T, Error> {
        let clock = &self.ambient.clock;
        let sent = clock.now();
        let answer = clock::within(&**clock, sent + limit, request).await;
        let timed_out = answer.is_none();
        let answer = answer.unwrap_or_else(|| {
            Err(unanswered(format!("no answer within {limit:.0?}")).with_unknown_effect())
        });
        let answer = answer.map_err(|error| error.with_store(self.member.id().as_str()));
        self.note(answer.as_ref().err(), timed_out, sent);
        answer
    }

    /// Logs the begin and the end of a failure, and begins a silence.
    fn note(self: &Arc<Self>, error: Option<&Error>, timed_out: bool, sent: BootInstant) {
        let member = self.member.id();
        let mut state = self.state();
        match error {
            Some(error) if !state.failing => {
                state.failing = true;
                tracing::warn!(%member, reason = error.reason(), "member does not count");
            }
            None if state.failing => {
                state.failing = false;
                tracing::info!(%member, "member answers again");
            }
            _ => {}
        }
        if timed_out
            && state.silent.is_none()
            && let Some(error) = error
        {
            state.silent = Some(Silence {
                since: sent,
                error: error.clone(),
            });
            background::spawn(probe(Arc::downgrade(self)));
        }
    }

    /// Fails while the member is silent.
    fn heard(&self) -> Result<(), Error> {
        match &self.state().silent {
            None => Ok(()),
            Some(silence) => {
                let span = self.ambient.clock.now().since(silence.since);
                Err(unanswered(format!("has not answered for {span:.1?}"))
                    .with_store(self.member.id().as_str())
                    .with_source(silence.error.clone()))
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        // Every change under the mutex is a single step; a panic elsewhere leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks a silent member how it is until it answers, and ends the silence.
async fn probe(link: Weak<Link>) {
    loop {
        let Some(link) = link.upgrade() else { return };
        let clock = &link.ambient.clock;
        let pause = link.ambient.random_span(PROBE_PAUSE / 2, PROBE_PAUSE);
        clock.sleep_until(clock.now() + pause).await;
        let end = clock.now() + PROBE_LIMIT;
        let sent = clock.now();
        if let Some(Ok(presence)) = clock::within(&**clock, end, link.member.presence()).await {
            link.roster.present(link.place, presence, sent);
            let mut state = link.state();
            state.silent = None;
            state.failing = false;
            tracing::info!(member = %link.member.id(), "member answers again");
            return;
        }
    }
}

fn unanswered(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unreachable, text)
}

/// For people who look: they would rather wait a moment than see nothing.
const LOOK_LIMIT: Duration = Duration::from_secs(1);
const LIST_LIMIT: Duration = Duration::from_secs(10);

const SETTLE_MAX: Duration = Duration::from_millis(100);

const PROBE_PAUSE: Duration = Duration::from_millis(200);
const PROBE_LIMIT: Duration = Duration::from_secs(1);
const FOLLOW_UP_PAUSE: Duration = Duration::from_millis(500);
