mod asking;
mod freeing;
mod hearing;
mod recording;

use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::time::Duration;

use tokio_util::task::TaskTracker;

use crate::BoxFuture;
use crate::ambient::Ambient;
use crate::background;
use crate::clock::{self, BootInstant};
use crate::error::{Error, ErrorKind};
use crate::member::Member;
use crate::quorum::roster::Roster;
use crate::quorum::traces::Traces;
use crate::quorum::trust::Distrust;
use crate::quorum::waiting::Waits;

pub(crate) use asking::{Asking, Dated};

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
    waits: Arc<Waits>,
    /// Set once the member was told to whom it is to speak.
    listening: Once,
    /// Held while the member is asked how it is for the first time.
    meeting: tokio::sync::Mutex<()>,
    state: Mutex<LinkState>,
    /// Releases that have not been tried yet, and attempts that are to be seen through.
    untried: TaskTracker,
    /// Waits that are over and still stand in the member's queue.
    leaving: TaskTracker,
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

impl Link {
    pub(crate) fn new(
        place: usize,
        roster: Arc<Roster>,
        waits: Arc<Waits>,
        ambient: Ambient,
    ) -> Arc<Self> {
        let untried = TaskTracker::new();
        // It only counts; closed, it can be waited for whenever it is empty.
        untried.close();
        Arc::new(Self {
            place,
            member: Arc::clone(&roster.members()[place]),
            roster,
            ambient,
            waits,
            listening: Once::new(),
            meeting: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            untried,
            leaving: TaskTracker::new(),
        })
    }

    pub(crate) fn member(&self) -> &Arc<dyn Member> {
        &self.member
    }

    /// Sees to it that the member may be asked: asks it how it is, if that is not known, or if what
    /// is known stands in the way.
    async fn may_ask(self: &Arc<Self>, limit: Duration) -> Result<(), Error> {
        self.heard()?;
        if self.roster.is_open(self.place) {
            return Ok(());
        }
        // In a box of its own, as hardly any request comes here and each would have room for it.
        Box::pin(self.ask_first(limit)).await
    }

    async fn ask_first(self: &Arc<Self>, limit: Duration) -> Result<(), Error> {
        let clock = &*self.ambient.clock;
        let began = clock.now();
        if self.roster.must_meet(self.place, began) {
            // One asks for all that come meanwhile.
            let meeting = clock::within(clock, began + limit, self.meeting.lock()).await;
            self.heard()?;
            if meeting.is_some() && self.roster.must_meet(self.place, began) {
                self.meet(limit).await?;
            }
        }
        let asking = self.roster.may_ask(self.place);
        let obstacle = match clock::within(clock, began + limit, asking).await {
            Some(verdict) => verdict.err(),
            None => self.roster.obstacle(self.place),
        };
        obstacle.map_or(Ok(()), |distrust| Err(self.refusal(&distrust)))
    }

    async fn meet(self: &Arc<Self>, limit: Duration) -> Result<(), Error> {
        let sent = self.ambient.clock.now();
        match self.request(limit, self.member.presence()).await {
            Ok(presence) => self.roster.present(self.place, presence, sent),
            // Nothing of the attempt itself was sent.
            Err(error) => self
                .roster
                .has_no_presence(self.place, error.without_effect())?,
        }
        Ok(())
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
        // These concern one lock and not the member. The caller gets the error.
        let is_fault = |error: &&Error| {
            !matches!(
                error.kind(),
                ErrorKind::PermitsDiffer | ErrorKind::ForeignLock
            )
        };
        self.note(answer.as_ref().err().filter(is_fault), timed_out, sent);
        answer
    }

    /// Logs the begin and the end of a failure, and begins a silence.
    fn note(self: &Arc<Self>, error: Option<&Error>, timed_out: bool, sent: BootInstant) {
        let member = self.member.id();
        let mut state = self.state();
        match error {
            Some(error) if !state.failing => {
                state.failing = true;
                self.roster.failing(self.place, true);
                tracing::warn!(%member, reason = error.reason(), "member has no vote");
            }
            None if state.failing => {
                state.failing = false;
                self.roster.failing(self.place, false);
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
        match clock::within(&**clock, end, link.member.presence()).await {
            Some(Ok(presence)) => link.roster.present(link.place, presence, sent),
            // What it says of itself is of no use, but it says something.
            Some(Err(error)) if !error.is_unreachable() => {}
            _ => continue,
        }
        let mut state = link.state();
        state.silent = None;
        state.failing = false;
        link.roster.failing(link.place, false);
        tracing::info!(member = %link.member.id(), "member answers again");
        return;
    }
}

fn unanswered(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unreachable, text)
}

const PROBE_PAUSE: Duration = Duration::from_millis(200);
const PROBE_LIMIT: Duration = Duration::from_secs(1);
