use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, WallTime};
use leasehold::{ClientId, ClientInfo, Error, ErrorKind, Presence, RunId, background};
use redis::aio::MultiplexedConnection;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::answer::Answer;
use super::command::{Command, Script};
use super::failure::connection_error;
use super::listener::{EndOf, Inboxes, Listener};
use super::opening::{Entrance, Opening};
use crate::wire::client_record;

/// An open connection to a server that can be a member. Ends with its last owner.
pub(crate) struct Link {
    connection: MultiplexedConnection,
    driver: Driver,
    aborted: AtomicBool,
    user: String,
    opening: Opening,
    introduced: Mutex<HashMap<ClientId, BootInstant>>,
    inboxes: Arc<Inboxes>,
}

/// How often a client that takes and renews locks writes who it is, and how long that stays.
const INTRODUCE_EVERY: Duration = Duration::from_secs(60);
const INTRODUCTION_MS: u64 = 4 * 60 * 1000;

impl Link {
    /// Sets `driver` going, which reads and writes for `connection`, and asks the server who and
    /// how it is.
    pub(super) async fn start(
        connection: MultiplexedConnection,
        driver: impl Future<Output = ()> + Send + 'static,
        inboxes: Inboxes,
        entrance: Entrance,
        clock: &dyn Clock,
    ) -> Result<Self, Error> {
        let inboxes = Arc::new(inboxes);
        let driver = Driver::start(driver, EndOf(Arc::clone(&inboxes)));
        Ok(Self {
            opening: Opening::ask(&connection, &entrance, clock).await?,
            connection,
            driver,
            aborted: AtomicBool::new(false),
            user: entrance.user,
            introduced: Mutex::default(),
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
    pub(crate) async fn exchange(&self, commands: Vec<Command>) -> Result<Vec<Answer>, Error> {
        let answers = exchange(&self.connection, commands, &self.user).await;
        answers.map_err(Error::with_unknown_effect)
    }

    /// Sends `commands`, among them calls of `script`, in one write; the answers are in their order.
    /// Where the server does not know the script, it is loaded and everything sent again.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    pub(crate) async fn run(
        &self,
        script: &Script,
        mut commands: Vec<Command>,
    ) -> Result<Vec<Answer>, Error> {
        let answers = self.exchange(commands.clone()).await?;
        let unknown = |answer: &Answer| matches!(answer, Answer::Refused(refusal) if refusal.is_unknown_script());
        if !answers.iter().any(unknown) {
            return Ok(answers);
        }
        commands.insert(0, script.load());
        let mut answers = self.exchange(commands).await?;
        let loaded = answers.remove(0);
        if matches!(loaded, Answer::Refused(_)) {
            // A server that may not be told the script refuses the loading with the reason.
            let unloaded = answers.iter_mut().filter(|answer| unknown(answer));
            unloaded.for_each(|answer| answer.clone_from(&loaded));
        }
        Ok(answers)
    }

    /// Whether requests may be sent on it.
    pub(super) fn is_usable(&self) -> bool {
        !self.aborted.load(Ordering::Acquire) && self.driver.is_running()
    }

    /// Throws the connection away with everything that was not delivered yet. Whoever waits for an
    /// answer on it learns that there will be none.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::Release);
        self.driver.task.abort();
    }

    /// Resolves once the socket of an aborted or broken connection is closed.
    pub(super) async fn closed(&self) {
        let mut open = self.driver.open.clone();
        while open.changed().await.is_ok() {}
    }

    /// Makes the server forget what it has received on `previous` and not yet executed, if it may
    /// be asked for that. Aborting throws away what has not been delivered; this, what has.
    pub(super) async fn forget(&self, previous: &Self) -> Result<(), Error> {
        let same_run = previous.run_id() == self.run_id();
        let Some(number) = previous.opening.number.filter(|_| same_run) else {
            return Ok(());
        };
        let kill = Command::new("CLIENT").arg("KILL").arg("ID");
        let answers = self.exchange(vec![kill.arg(number.to_string())]).await?;
        if let [Answer::Refused(refusal)] = answers.as_slice() {
            tracing::debug!(code = %refusal.code, "the server may not be told to forget");
        }
        Ok(())
    }

    /// The commands by which `client` says who it is, if it has not done so lately.
    pub(crate) fn introduction(&self, client: &ClientInfo, now: BootInstant) -> Vec<Command> {
        let introduced = self.introduced.lock();
        let introduced = introduced.unwrap_or_else(PoisonError::into_inner);
        let lately = |at: &BootInstant| now.since(*at) < INTRODUCE_EVERY;
        if introduced.get(&client.id).is_some_and(lately) {
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

    /// Notes that the introduction of `client` was answered at `now`.
    pub(crate) fn note_introduced(&self, client: ClientId, now: BootInstant) {
        let introduced = self.introduced.lock();
        let mut introduced = introduced.unwrap_or_else(PoisonError::into_inner);
        introduced.retain(|_, at| now.since(*at) < INTRODUCE_EVERY);
        introduced.entry(client).or_insert(now);
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

/// Sends `commands` in one write and waits for all answers.
pub(super) async fn exchange(
    connection: &MultiplexedConnection,
    commands: Vec<Command>,
    user: &str,
) -> Result<Vec<Answer>, Error> {
    let count = commands.len();
    let mut pipeline = redis::Pipeline::with_capacity(count);
    for command in commands {
        pipeline.add_command(command.into_inner());
    }
    let mut connection = connection.clone();
    let answers = connection.send_packed_commands(&pipeline, 0, count).await;
    let answers = answers.map_err(|error| connection_error(&error, user))?;
    if answers.len() != count {
        let wrong = "the server gave another number of answers than it was asked for";
        return Err(Error::new(ErrorKind::Garbled, wrong));
    }
    Ok(answers.into_iter().map(Answer::from).collect())
}

/// The task that reads and writes for a connection; the socket is closed when it ends.
struct Driver {
    task: AbortHandle,
    /// Has a sender for as long as the socket is open.
    open: watch::Receiver<()>,
}

impl Driver {
    fn start(driver: impl Future<Output = ()> + Send + 'static, end: EndOf) -> Self {
        let (closing, open) = watch::channel(());
        // In this order, also where the task is aborted: who hears that the connection is gone may ask
        // again at once, and must not find this one.
        let end = (closing, end);
        let task = background::spawn(async move {
            driver.await;
            drop(end);
        });
        let task = task.abort_handle();
        Self { task, open }
    }

    fn is_running(&self) -> bool {
        self.open.has_changed().is_ok()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
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
