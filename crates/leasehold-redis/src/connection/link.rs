use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use leasehold::clock::{BootInstant, Clock, WallTime};
use leasehold::{ClientId, ClientInfo, Error, Incarnation, Mark, Presence, RunId};

use super::answer::Answer;
use super::command::Command;
use super::introductions::Introductions;
use super::line::Line;
use super::listener::{Inboxes, Listener};
use super::opening::{Entrance, Opening};
use super::outbox::Replies;
use super::writing::Writing;
use crate::rests::Rests;
use crate::wire::client_record;

/// An open connection to a server that can be a member. Ends with its last owner.
pub(crate) struct Link {
    pub(super) line: Line,
    aborted: AtomicBool,
    user: String,
    opening: Opening,
    introductions: Introductions,
    rests: Rests,
    is_behind: AtomicBool,
    /// The mark that the server showed last, and what that makes it.
    seen: Mutex<Option<(Answer, Incarnation)>>,
    inboxes: Arc<Inboxes>,
}

/// How long it stays who a client is, which it writes again much sooner.
const INTRODUCTION_MS: u64 = 4 * 60 * 1000;

impl Link {
    /// Asks the server on `line` who and how it is.
    pub(super) async fn open(
        line: Line,
        inboxes: Arc<Inboxes>,
        entrance: Entrance,
        clock: &dyn Clock,
    ) -> Result<Self, Error> {
        Ok(Self {
            opening: Opening::ask(&line, &entrance, clock).await?,
            line,
            aborted: AtomicBool::new(false),
            user: entrance.user,
            introductions: Introductions::default(),
            rests: Rests::default(),
            is_behind: AtomicBool::new(false),
            seen: Mutex::default(),
            inboxes,
        })
    }

    /// The run of the server.
    pub(crate) fn run_id(&self) -> &RunId {
        &self.opening.run
    }

    /// Whether SET may say NX and GET at once.
    pub(crate) fn has_set_nx_get(&self) -> bool {
        self.opening.set_nx_get
    }

    /// How the server was when the connection opened, unless it was asked before `since`.
    pub(crate) fn opening(&self, since: BootInstant) -> Option<Result<Presence, Error>> {
        (since <= self.opening.asked).then(|| self.opening.presence.clone())
    }

    /// What the server's wall clock shows at `now`, unless it was set since the connection began:
    /// good enough to tell days apart.
    pub(crate) fn server_clock(&self, now: BootInstant) -> Option<WallTime> {
        let then = self.opening.clock?;
        let micros = u64::try_from(now.since(self.opening.asked).as_micros()).unwrap_or(u64::MAX);
        Some(WallTime::from_micros(
            then.as_micros().saturating_add(micros),
        ))
    }

    /// The name of the user, for messages.
    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    /// Sends `commands` in one write and waits for all answers. What the server refuses is an
    /// answer too.
    ///
    /// # Errors
    ///
    /// If not every answer came; any part of the commands may have taken effect.
    pub(crate) async fn exchange(&self, commands: &[Command]) -> Result<Vec<Answer>, Error> {
        let answers = self.line.ask(commands).await;
        answers.map_err(Error::with_unknown_effect)
    }

    /// As [`exchange`](Self::exchange), for what `write` writes, the same each time, and where `is_shown` with
    /// what the server shows of itself after it. Takes less than commands that are put together first.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    pub(crate) async fn exchange_written(
        &self,
        write: impl Fn(&mut Writing<'_>),
        is_shown: bool,
    ) -> Result<Replies, Error> {
        let replies = self.line.ask_written(write, is_shown).await;
        replies.map_err(Error::with_unknown_effect)
    }

    /// Whether requests may be sent on it.
    pub(super) fn is_usable(&self) -> bool {
        !self.aborted.load(Ordering::Acquire) && self.line.is_open()
    }

    /// Throws the connection away with everything that was not delivered yet. Whoever waits for an
    /// answer on it learns that there will be none.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::Release);
        self.line.abort();
    }

    /// Resolves once the socket of an aborted or broken connection is closed.
    pub(super) async fn closed(&self) {
        self.line.closed().await;
    }

    /// Makes the server forget what it has received on `previous` and not yet executed, if it may
    /// be asked for that. Aborting throws away what has not been delivered; this, what has.
    pub(super) async fn forget(&self, previous: &Self) -> Result<(), Error> {
        let same_run = previous.run_id() == self.run_id();
        let Some(number) = previous.opening.number.filter(|_| same_run) else {
            return Ok(());
        };
        let kill = Command::new("CLIENT").arg("KILL").arg("ID");
        let answers = self.exchange(&[kill.arg(number.to_string())]).await?;
        if let [Answer::Refused(refusal)] = answers.as_slice() {
            tracing::debug!(code = %refusal.code, "the server may not be told to forget");
        }
        Ok(())
    }

    /// The commands by which `client` says who it is, if it has not done so lately: taken to be sent.
    pub(crate) fn introduction(&self, client: &ClientInfo, now: BootInstant) -> Vec<Command> {
        if !self.introductions.is_due(client.id, now) {
            return Vec::new();
        }
        let record = client_record(client.id);
        let fields = Command::new("HSET")
            .arg(&record)
            .arg("host")
            .arg(&client.host)
            .arg("pid")
            .number(u64::from(client.pid))
            .arg("program")
            .arg(&client.program)
            .arg("since")
            .number(client.since.as_micros());
        let expiry = Command::new("PEXPIRE").arg(&record).number(INTRODUCTION_MS);
        vec![fields, expiry]
    }

    /// The command that lets `client` hear what concerns its waiters, if it is still to be sent.
    pub(crate) fn subscription(&self, client: ClientId) -> Option<Command> {
        self.inboxes.subscription(client)
    }

    /// Notes the answer to a [`subscription`](Self::subscription).
    pub(crate) fn note_subscribed(&self, client: ClientId, answer: &Answer) {
        self.inboxes.note_subscribed(client, answer, &self.user);
    }

    /// Whether `client` is told when it is its turn, as far as is known.
    pub(crate) fn tells(&self, client: ClientId) -> bool {
        self.inboxes.tells(client)
    }

    /// Notes that the user may tell nobody that it is its turn.
    pub(crate) fn note_mute(&self) {
        self.inboxes.note_mute();
    }

    /// Who is told what the server says unasked.
    pub(crate) fn listener(&self) -> &Listener {
        self.inboxes.listener()
    }

    /// Which counters were given their rest time on it.
    pub(crate) fn rests(&self) -> &Rests {
        &self.rests
    }

    /// Whether counters of locks were found ahead of this machine's clock lately.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    pub(crate) fn note_behind(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::Relaxed);
    }

    /// The incarnation of the server that shows `mark`, which is read by `read`.
    pub(crate) fn incarnation(
        &self,
        mark: &Answer,
        read: impl FnOnce(&str) -> Option<Mark>,
    ) -> Incarnation {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last, incarnation)) = &*seen {
            if last == mark {
                return incarnation.clone();
            }
            self.rests.forget();
        }
        let read = mark.as_text().and_then(read);
        let incarnation = Incarnation::new(self.run_id(), read.as_ref());
        *seen = Some((mark.clone(), incarnation.clone()));
        incarnation
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("usable", &self.is_usable())
            .field("run", self.run_id())
            .finish_non_exhaustive()
    }
}

/// A request that is under way and must not take effect late: an attempt before all. Unless its
/// answer came, the connection ends with it: what the caller has given up must not be delivered
/// later, and no release may be sent behind it on a connection of which nobody knows whether it
/// still gets through.
#[derive(Debug)]
pub(crate) struct Unanswered<'a>(Option<&'a Link>);

impl<'a> Unanswered<'a> {
    pub(crate) fn on(link: &'a Link) -> Self {
        Self(Some(link))
    }

    pub(crate) fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(link) = self.0 {
            link.abort();
        }
    }
}
