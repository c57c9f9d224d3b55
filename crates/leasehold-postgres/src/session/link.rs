//! The connections of a session: one for attempts, which may wait for a row, and for notifications; one for everything else.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{Shared, try_join_all};
use leasehold::clock::{BootInstant, WallTime, within};
use leasehold::store::{LockRequest, SessionContext, background, locked};
use leasehold::{Error, ErrorKind};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_postgres::{Client, Row, Statement};
use tokio_util::sync::CancellationToken;

use crate::connection::bounded::Heard;
use crate::connection::connect::{Driver, Ended, Place};
use crate::connection::silence::Silence;
use crate::connection::{failure, pooler};
use crate::schema;
use crate::session::requests::{STATEMENTS, column};
use crate::session::waits::Waits;

/// A connection that several requests use at once. The server answers them in order.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) client: Client,
    /// [`STATEMENTS`], prepared.
    pub(crate) statements: Vec<Statement>,
    closed: CancellationToken,
    heard: Heard,
    silence: Mutex<Silence>,
    /// Whether the server left a request without an answer.
    is_silent: AtomicBool,
    ended: Ended,
}

/// The channel of notifications, and the waits that hear them.
#[derive(Clone, Debug)]
pub(crate) struct Inbox(pub(crate) String, pub(crate) Arc<Waits>);

/// The place of a connection, which is opened when it is needed, and again once it is broken.
#[derive(Debug)]
pub(crate) struct Slot {
    place: Arc<Place>,
    context: SessionContext,
    inbox: Option<Inbox>,
    /// The runtime that drives the connection; `None` for that of the client's thread.
    runtime: Option<Handle>,
    /// Whether that runtime cannot drive a connection.
    is_refused: AtomicBool,
    current: Mutex<Option<Arc<Link>>>,
    /// The connection that is being opened. All requests share its outcome.
    connecting: Mutex<Option<Connecting>>,
}

type Connecting = Shared<oneshot::Receiver<Result<Arc<Link>, Error>>>;

/// How long a server may be silent while a connection is opened. Several answers are needed, so a server that is slow may take
/// longer for all of them.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// How often to wait for that long.
const SILENCES_MAX: usize = 6;

/// A request that was sent. If it is dropped, and the server has been silent for `limit`, then later requests take another
/// connection. The requests that are on this one may still be answered.
struct Sent<'a> {
    slot: &'a Slot,
    link: &'a Arc<Link>,
    limit: Duration,
}

impl<'a> Sent<'a> {
    fn new(slot: &'a Slot, link: &'a Arc<Link>, limit: Duration) -> Self {
        locked(&link.silence).sent(link.heard.count(), slot.now());
        // The client may drop the request a moment before its limit.
        let limit = limit - limit / 8;
        Self { slot, link, limit }
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        let silent_for = locked(&self.link.silence).lasts(self.link.heard.count(), self.slot.now());
        if silent_for >= self.limit {
            self.link.is_silent.store(true, Ordering::Relaxed);
            let mut current = locked(&self.slot.current);
            drop(current.take_if(|current| Arc::ptr_eq(current, self.link)));
        }
    }
}

impl Slot {
    pub(crate) fn new(
        place: Arc<Place>,
        context: SessionContext,
        inbox: Option<Inbox>,
        runtime: Option<Handle>,
    ) -> Arc<Self> {
        Arc::new(Self {
            place,
            context,
            inbox,
            runtime,
            is_refused: AtomicBool::new(false),
            current: Mutex::default(),
            connecting: Mutex::default(),
        })
    }

    /// Runs `work` on the connection, and returns its answer or an error within `limit`. Opening the connection may take
    /// as long before, and at least [`LockRequest::LIMIT_MAX`].
    pub(crate) async fn ask<T>(
        self: &Arc<Self>,
        limit: Duration,
        work: impl AsyncFnOnce(&Link) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Error> {
        self.asked(limit, work)
            .await
            .map_err(|error| error.with_store(self.place.settings.to_string()))
    }

    async fn asked<T>(
        self: &Arc<Self>,
        limit: Duration,
        work: impl AsyncFnOnce(&Link) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Error> {
        let opening = limit.max(LockRequest::LIMIT_MAX);
        let link = self.in_time(opening, self.link()).await;
        let link = link.unwrap_or_else(|| Err(Error::no_connection_within(opening)))?;
        let _sent = Sent::new(self, &link, limit);
        let working = pin!(work(&link));
        match self.in_time(limit, working).await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => {
                if failure::ends_connection(&error) {
                    link.close();
                }
                let error = failure::of_request(error);
                match link.ended.get() {
                    Some(reason) if !link.is_open() => Err(reason.clone().with_unknown_effect()),
                    _ => Err(error),
                }
            }
            None => Err(Error::no_answer_within(limit).with_unknown_effect()),
        }
    }

    /// Returns the connection. Nothing is asked of it yet, so an error has no effect.
    pub(crate) async fn link(self: &Arc<Self>) -> Result<Arc<Link>, Error> {
        if let Some(link) = self.open_link() {
            return Ok(link);
        }
        let connecting = self.connecting();
        if let Ok(answer) = connecting.clone().await {
            return answer;
        }
        // The runtime of a caller may have ended, or have no I/O.
        self.is_refused.store(true, Ordering::Relaxed);
        locked(&self.connecting).take_if(|current| current.ptr_eq(&connecting));
        let ended = |_| Err(Error::new(ErrorKind::Closed, "the client has ended"));
        self.connecting().await.unwrap_or_else(ended)
    }

    /// Opens the connection in a task, since a caller with little time would never see a connection that takes long.
    fn connecting(self: &Arc<Self>) -> Connecting {
        let mut connecting = locked(&self.connecting);
        if let Some(connecting) = &*connecting {
            return connecting.clone();
        }
        let (slot, (tell, told)) = (Arc::clone(self), oneshot::channel());
        let told = connecting.insert(told.shared()).clone();
        self.spawn(async move {
            let answer = slot.connect_in_time().await;
            *locked(&slot.connecting) = None;
            let _ = tell.send(answer);
        });
        told
    }

    /// Returns whether it has a connection, after opening one if that takes no longer than `limit`.
    pub(crate) async fn opens_within(self: &Arc<Self>, limit: Duration) -> bool {
        matches!(self.in_time(limit, self.link()).await, Some(Ok(_)))
    }

    /// Returns whether it has a connection now.
    pub(crate) fn is_open(&self) -> bool {
        self.open_link().is_some()
    }

    /// Runs a task where the connection is driven.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match &self.runtime {
            Some(runtime) if !self.is_refused.load(Ordering::Relaxed) => {
                let _within = runtime.enter();
                drop(background::spawn(task));
            }
            _ => self.context.spawn(task),
        }
    }

    async fn connect_in_time(&self) -> Result<Arc<Link>, Error> {
        let heard = Heard::default();
        let mut connecting = pin!(self.connect(&heard));
        for _ in 0..SILENCES_MAX {
            let before = heard.count();
            if let Some(link) = self.in_time(SILENCE_MAX, &mut connecting).await {
                let link = Arc::new(link?);
                *locked(&self.current) = Some(Arc::clone(&link));
                return Ok(link);
            }
            if heard.count() == before {
                break;
            }
        }
        Err(Error::no_connection_within(SILENCE_MAX))
    }

    async fn connect(&self, heard: &Heard) -> Result<Link, Error> {
        let (client, driver) = self.place.connect(heard).await?;
        let (closed, ended) = (CancellationToken::new(), driver.ended());
        let closing = closed.clone().drop_guard();
        let waits = self.inbox.as_ref().map(|Inbox(_, waits)| Arc::clone(waits));
        self.spawn(drive(driver, closed.clone(), waits));
        let prepared = self.prepare(&client).await;
        let statements = prepared.map_err(|error| ended.get().cloned().unwrap_or(error))?;
        closing.disarm();
        Ok(Link {
            client,
            statements,
            closed,
            silence: Mutex::default(),
            heard: heard.clone(),
            is_silent: AtomicBool::new(false),
            ended,
        })
    }

    /// Checks the schema, prepares the statements and listens, all in one round trip.
    async fn prepare(&self, client: &Client) -> Result<Vec<Statement>, Error> {
        let schema = self.place.settings.schema.as_str();
        let greeting = schema::sql_in(schema, GREETING);
        let statements = STATEMENTS.iter().map(async |(sql, types)| {
            let sql = schema::sql_in(schema, sql);
            client.prepare_typed(&sql, types).await
        });
        let listening = async {
            match &self.inbox {
                Some(Inbox(channel, _)) => client.batch_execute(&format!("listen {channel}")).await,
                None => Ok(()),
            }
        };
        let (greeting, statements, listening) = futures_util::join!(
            client.query_typed(&greeting, &[]),
            try_join_all(statements),
            listening
        );
        let version = match greeting {
            Ok(rows) => {
                let row = rows.first();
                let has_settings = row.map_or(Ok(true), |row| column(row, 1))?;
                if !has_settings {
                    let clock = &*self.context.env().clock;
                    pooler::take_over(&self.place, client, clock).await?;
                }
                row.map(|row| self.greeted(row)).transpose()?
            }
            Err(error) if failure::is_missing_schema(&error) => None,
            Err(error) => return Err(failure::of_connecting(error)),
        };
        schema::check(schema, version)?;
        listening.map_err(failure::of_connecting)?;
        statements.map_err(failure::of_connecting)
    }

    /// Compares the clocks, and returns the version of the schema. One client with a clock far ahead would raise the
    /// fences of all others.
    fn greeted(&self, row: &Row) -> Result<i32, Error> {
        let server: i64 = column(row, 2)?;
        let server = u64::try_from(server).map(WallTime::from_micros);
        self.context.env().clock.wall().check(server.ok())?;
        column(row, 0)
    }

    fn open_link(&self) -> Option<Arc<Link>> {
        locked(&self.current)
            .as_ref()
            .filter(|link| link.is_open())
            .cloned()
    }

    async fn in_time<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        within(&*self.context.env().clock, self.now() + limit, work).await
    }

    fn now(&self) -> BootInstant {
        self.context.env().clock.now()
    }
}

impl Link {
    fn is_open(&self) -> bool {
        !self.closed.is_cancelled() && !self.client.is_closed()
    }

    /// Ends the connection, and all requests on it.
    fn close(&self) {
        self.closed.cancel();
    }
}

/// The driver says goodbye to the server, but not before all answers have come.
impl Drop for Link {
    fn drop(&mut self) {
        if self.is_silent.load(Ordering::Relaxed) {
            self.close();
        }
    }
}

/// The version of the schema, whether the session has the settings that the client asked for, and the server's clock in
/// microseconds. Until the session has the settings, it may have any search path.
const GREETING: &str = "select number, coalesce(pg_catalog.current_setting('leasehold_client.session', true) operator(pg_catalog.=) 'on', false), \
     pg_catalog.int8(pg_catalog.date_part('epoch'::pg_catalog.text, pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000000::pg_catalog.float8) \
     from leasehold.version";

/// The task of a connection. It ends with the connection, or when its client and its requests are gone.
async fn drive(mut driver: Driver, closed: CancellationToken, waits: Option<Arc<Waits>>) {
    let _listening = waits.as_ref().map(Waits::listening);
    let reading = async {
        while let Some(notification) = driver.next().await {
            if let Some(waits) = &waits {
                waits.wake(notification.payload());
            }
        }
    };
    // Also if the runtime of a caller ends.
    let _end = closed.clone().drop_guard();
    tokio::select! {
        () = closed.cancelled() => {}
        () = reading => {}
    }
    drop(driver);
}
