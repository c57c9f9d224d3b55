use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold::clock::{Clock, within};
use leasehold::{Error, ErrorKind, background};
use tokio::sync::watch;

use super::line::Line;
use super::link::Link;
use super::listener::{Inboxes, Listener};
use super::opening::{Entrance, Protocol};
use super::socket;
use super::tls::Tls;
use super::visit::Visit;
use crate::url::{Login, RedisUrl};

/// The one connection to a server: opened when it is first needed, and again after it broke.
#[derive(Debug)]
pub(crate) struct Connector {
    url: RedisUrl,
    tls: Tls,
    clock: Arc<dyn Clock>,
    listener: Arc<Listener>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    /// The connection before this one, until the next one stands.
    previous: Option<Arc<Link>>,
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Idle,
    Connecting(watch::Receiver<Option<Outcome>>),
    Up(Arc<Link>),
}

type Outcome = Result<Arc<Link>, Error>;

/// How long opening a connection may take, whoever waits for it. Callers have shorter limits of
/// their own; the connection is then ready for their next request.
const CONNECT_MAX: Duration = Duration::from_secs(5);

impl Connector {
    pub(crate) fn new(url: RedisUrl, tls: Tls, clock: Arc<dyn Clock>) -> Self {
        let listener = Listener::new(url.id.clone(), url.prefix.clone());
        Self {
            url,
            tls,
            clock,
            listener: Arc::new(listener),
            state: Mutex::default(),
        }
    }

    pub(crate) fn url(&self) -> &RedisUrl {
        &self.url
    }

    /// Who is told what the server says unasked.
    pub(crate) fn listener(&self) -> &Listener {
        &self.listener
    }

    /// The connection, opened if need be. All who ask meanwhile share one attempt and its outcome.
    ///
    /// # Errors
    ///
    /// Why there is none. Nothing was sent that could have an effect.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves the attempt to the others, and to those who ask next.
    pub(crate) async fn link(self: &Arc<Self>) -> Outcome {
        let mut outcome = match self.ready_or_connecting() {
            Ok(link) => return Ok(link),
            Err(outcome) => outcome,
        };
        let outcome = outcome.wait_for(Option::is_some).await;
        let outcome = outcome.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| {
            let broken = "connecting was broken off: the runtime it ran on has ended";
            Err(Error::new(ErrorKind::Unreachable, broken))
        })
    }

    fn ready_or_connecting(
        self: &Arc<Self>,
    ) -> Result<Arc<Link>, watch::Receiver<Option<Outcome>>> {
        let mut state = self.state();
        match &state.phase {
            Phase::Up(link) if link.is_usable() => return Ok(link.clone()),
            Phase::Up(link) => state.previous = Some(link.clone()),
            // An attempt whose sender is gone died with the runtime it ran on.
            Phase::Connecting(outcome) if outcome.has_changed().is_ok() => {
                return Err(outcome.clone());
            }
            Phase::Connecting(_) | Phase::Idle => {}
        }
        let (sender, outcome) = watch::channel(None);
        state.phase = Phase::Connecting(outcome.clone());
        let previous = state.previous.clone();
        background::spawn(self.clone().attempt(previous, sender));
        Err(outcome)
    }

    async fn attempt(
        self: Arc<Self>,
        previous: Option<Arc<Link>>,
        sender: watch::Sender<Option<Outcome>>,
    ) {
        let deadline = self.clock.now() + CONNECT_MAX;
        let connected = within(&*self.clock, deadline, self.connect(previous)).await;
        let outcome = connected.unwrap_or_else(|| {
            let silent = format!("no connection within {CONNECT_MAX:?}");
            Err(Error::new(ErrorKind::Unreachable, silent))
        });
        let outcome = outcome.map(Arc::new);
        let mut state = self.state();
        state.phase = match &outcome {
            Ok(link) => {
                state.previous = None;
                Phase::Up(link.clone())
            }
            Err(_) => Phase::Idle,
        };
        // Under the lock: who finds no attempt any more must find its outcome.
        sender.send_replace(Some(outcome));
    }

    async fn connect(&self, previous: Option<Arc<Link>>) -> Result<Link, Error> {
        if let Some(previous) = &previous {
            // What the old connection has not delivered must be thrown away before the new one
            // can carry a release.
            previous.closed().await;
        }
        let entrance = self.entrance();
        let (line, inboxes, _) = self.enter(&entrance).await?;
        let link = Link::open(line, inboxes, entrance, &*self.clock).await?;
        if let Some(previous) = &previous {
            link.forget(previous).await?;
        }
        tracing::debug!(member = %self.url.id, "connected");
        Ok(link)
    }

    /// A connection of its own, to look at the server, whatever that is. Closed with its owner.
    ///
    /// # Errors
    ///
    /// Why there is none. Nothing was sent that could have an effect.
    pub(crate) async fn visit(&self) -> Result<Visit, Error> {
        let entrance = self.entrance();
        let (line, _, protocol) = self.enter(&entrance).await?;
        let resp3 = protocol == Protocol::Resp3;
        Visit::begin(line, entrance.user, entrance.database, resp3).await
    }

    fn entrance(&self) -> Entrance {
        Entrance {
            user: Login::shown(self.url.login.as_ref()).to_owned(),
            login: self.url.login.clone(),
            database: self.url.database,
        }
    }

    /// Opens a stream and logs in on it, in the newest protocol that the server speaks.
    async fn enter(&self, entrance: &Entrance) -> Result<(Line, Arc<Inboxes>, Protocol), Error> {
        let mut protocol = Protocol::Resp3;
        loop {
            let stream = socket::open(&self.url, &self.tls).await?;
            let inboxes = Inboxes::new(Arc::clone(&self.listener), protocol == Protocol::Resp3);
            let inboxes = Arc::new(inboxes);
            let line = Line::start(stream, &inboxes);
            if entrance.greet(&line, protocol).await? {
                return Ok((line, inboxes, protocol));
            }
            protocol = Protocol::Resp2;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
