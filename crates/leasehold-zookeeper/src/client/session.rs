//! The session of a client: opens it when it is needed first, and moves it to another server when a connection breaks.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use leasehold::clock::{BootInstant, within};
use leasehold::store::{CallerRuntimes, SessionContext, locked};
use leasehold::{Error, ErrorKind};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::connection::Connection;
use super::connector::{Credentials, Greeting, Servers};

/// The session of a client at an ensemble.
#[derive(Debug)]
pub(crate) struct Session(Arc<SessionInner>);

#[derive(Debug)]
struct SessionInner {
    servers: Arc<Servers>,
    context: SessionContext,
    /// The runtimes that may drive the connection.
    callers: Arc<CallerRuntimes>,
    state: Mutex<SessionState>,
    link: watch::Sender<Link>,
}

#[derive(Debug, Default)]
struct SessionState {
    /// The session on the server, unless it is known to be over.
    credentials: Option<Credentials>,
    /// Whether a task keeps a connection.
    is_kept: bool,
}

/// The connection to the ensemble.
#[derive(Clone, Debug)]
enum Link {
    /// No caller has asked yet, or the session was closed.
    Idle,
    /// On the way to a server.
    Connecting,
    Up(Arc<Connection>),
    /// No server offered a connection, and the task tries again or has ended.
    Down(Error),
}

impl Session {
    /// Returns a session that is not open yet.
    pub(crate) fn new(servers: Arc<Servers>, context: SessionContext) -> Self {
        Self(Arc::new(SessionInner {
            servers,
            context,
            callers: Arc::default(),
            state: Mutex::default(),
            link: watch::Sender::new(Link::Idle),
        }))
    }

    pub(crate) fn servers(&self) -> &Servers {
        &self.0.servers
    }

    /// Returns the connection. Opens a session with about this timeout if there is none, and waits at most `limit` for
    /// a server.
    ///
    /// # Errors
    ///
    /// Why no server can be reached. Nothing was sent.
    pub(crate) async fn connection(
        &self,
        limit: Duration,
        timeout: Duration,
    ) -> Result<Arc<Connection>, Error> {
        let mut link = self.0.link.subscribe();
        // An error from before this call says nothing about now.
        let mut is_new = false;
        let clock = &*self.0.context.env().clock;
        let connected = async {
            loop {
                let now = link.borrow_and_update().clone();
                match now {
                    Link::Up(connection) if connection.is_open() => return Ok(connection),
                    Link::Down(error) if is_new => return Err(error),
                    Link::Down(_) | Link::Idle => self.keep(timeout),
                    Link::Connecting | Link::Up(_) => {}
                }
                if link.changed().await.is_err() {
                    return Err(Error::new(ErrorKind::Closed, "the client has ended"));
                }
                is_new = true;
            }
        };
        let connected = within(clock, clock.now() + limit, connected).await;
        connected.unwrap_or_else(|| Err(Error::no_connection_within(limit)))
    }

    /// Starts the task that keeps the connection, unless it runs.
    fn keep(&self, timeout: Duration) {
        let mut state = locked(&self.0.state);
        if std::mem::replace(&mut state.is_kept, true) {
            return;
        }
        self.0.link.send_replace(Link::Connecting);
        let task = keep(Arc::downgrade(&self.0), self.0.context.clone(), timeout);
        self.0.context.spawn(task);
    }

    /// Returns the number of the session, as long as it may exist.
    pub(crate) fn number(&self) -> Option<i64> {
        locked(&self.0.state)
            .credentials
            .as_ref()
            .map(|known| known.session)
    }

    /// Begins to end the session, and with it all its locks and places: [`number`](Self::number) is `None` from now on.
    /// The next request opens another session.
    pub(crate) fn begin_close(&self) {
        if locked(&self.0.state).credentials.take().is_some() {
            // The connection says goodbye when its last user is gone.
            self.0.link.send_replace(Link::Connecting);
        }
    }

    /// Waits until the session that was closed has ended, or for a second.
    pub(crate) async fn closed(&self) {
        let mut link = self.0.link.subscribe();
        let clock = &*self.0.context.env().clock;
        let closed = async {
            while matches!(*link.borrow_and_update(), Link::Connecting)
                && link.changed().await.is_ok()
            {}
        };
        within(clock, clock.now() + CLOSE_MAX, closed).await;
    }
}

/// How long the end of a client waits for the end of its session. The session timeout ends it otherwise.
const CLOSE_MAX: Duration = Duration::from_secs(1);

impl SessionInner {
    /// Ends the task. The next request starts another one.
    fn stop(&self, link: Link) {
        let mut state = locked(&self.state);
        state.is_kept = false;
        state.credentials = None;
        self.link.send_replace(link);
    }
}

/// Keeps a connection until the session is over, or its owner is gone.
async fn keep(session: Weak<SessionInner>, context: SessionContext, timeout: Duration) {
    let env = context.env();
    let mut lost = None::<BootInstant>;
    let mut failures = 0;
    while let Some(inner) = session.upgrade() {
        let known = locked(&inner.state).credentials.clone();
        if known.is_none() && lost.is_some() {
            return inner.stop(Link::Idle);
        }
        match inner.servers.open(known.as_ref(), timeout, env).await {
            Ok(Greeting::Open(opened)) => {
                let (connection, driver, granted) = *opened;
                if known.is_some_and(|known| known.session != granted.session) {
                    // Some servers open another session without a word. It has none of the locks.
                    tracing::warn!("a server forgot the session, and with it all locks");
                }
                locked(&inner.state).credentials = Some(granted);
                let server = connection.server.clone();
                inner.link.send_replace(Link::Up(Arc::new(connection)));
                let callers = Arc::clone(&inner.callers);
                callers.serve_from(Handle::current());
                drop(inner);
                driver.run(Some(callers)).await;
                (lost, failures) = (Some(env.clock.now()), 0);
                if let Some(inner) = session.upgrade() {
                    if locked(&inner.state).credentials.is_some() {
                        inner.servers.has_failed(server);
                    }
                    inner.link.send_replace(Link::Connecting);
                }
            }
            Ok(Greeting::Expired) => return inner.stop(Link::Idle),
            Err(error) => {
                let over = known.as_ref().map(|known| known.timeout * 2);
                let since = *lost.get_or_insert_with(|| env.clock.now());
                if over.is_none_or(|over| since + over <= env.clock.now()) {
                    return inner.stop(Link::Down(error));
                }
                inner.link.send_replace(Link::Down(error));
                drop(inner);
                let pause = PAUSE.saturating_mul(1 << failures.min(5));
                failures += 1;
                env.clock
                    .sleep_until(env.clock.now() + pause.min(PAUSE_MAX))
                    .await;
            }
        }
    }
}

/// The pause before the next attempt to reach a server.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);
