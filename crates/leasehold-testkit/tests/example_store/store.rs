//! A whole store on a network, as a template: a session with one connection, whose server notifies waiters.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{BootInstant, within};
use leasehold::store::{
    AcquireError, BoxFuture, Exclusion, Expiry, Grant, Guarantees, Held, Inspection, LeaseTerms,
    LockRequest, Order, Progress, ReleaseReply, RenewReply, Session, SessionContext, Store, Term,
    poll_until,
};
use leasehold::{Error, ErrorKind, LostReason, Mode};
use tokio::sync::Mutex;

use crate::link::{Call, Link, Reply};

/// The place: the address of a server.
#[derive(Clone, Debug)]
pub(crate) struct ExampleStore(pub(crate) SocketAddr);

/// The locks of one client.
#[derive(Clone, Debug)]
pub(crate) struct ExampleSession(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    server: SocketAddr,
    context: SessionContext,
    /// The connection; `None` until the first request.
    link: Mutex<Option<Arc<Link>>>,
}

impl fmt::Display for ExampleStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "example server {}", self.0)
    }
}

// [store]
impl Store for ExampleStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees::new(Exclusion::OneServer, Expiry::Lease, Order::Fifo)
    }

    fn terms(&self) -> LeaseTerms {
        LeaseTerms::single()
    }

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        Arc::new(ExampleSession(Arc::new(Inner {
            server: self.0,
            context,
            link: Mutex::default(),
        })))
    }
}
// [store]

impl Session for ExampleSession {
    // [acquire]
    fn acquire<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        let env = self.0.context.env();
        self.0.context.in_runtime(async move {
            if request.mode != Mode::Exclusive {
                let text = format!("{} mode is not offered", request.mode);
                return Err(Error::new(ErrorKind::Unsupported, text).into());
            }
            if request.is_queued() {
                return self.wait(request, progress).await;
            }
            let how = if request.barges { "barge" } else { "try" };
            let attempt = async |request: Arc<LockRequest>| {
                let (mut call, since) = self.ask(&request, how).await?;
                match self.answer(&request, &mut call).await? {
                    Reply::Granted(fence) => Ok(Grant::new(fence, Term::new(since, request.ttl))),
                    Reply::Busy(busy) => Err(AcquireError::Busy(busy)),
                    other => Err(unexpected(&other).into()),
                }
            };
            poll_until(env, request, progress, attempt, || env.poll_pause()).await
        })
    }
    // [acquire]

    // [renew]
    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<RenewReply>> {
        // All are sent before the first answer arrives.
        let renewals = leases.iter().map(|held| self.renew_one(&held.request));
        Box::pin(futures_util::future::join_all(renewals))
    }
    // [renew]

    // [release]
    fn release<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
    ) -> BoxFuture<'a, Result<ReleaseReply, Error>> {
        self.0.context.in_runtime(async move {
            Ok(match self.is_done("release", request).await? {
                true => ReleaseReply::Released,
                false => ReleaseReply::WasLost,
            })
        })
    }
    // [release]

    fn inspection(&self) -> Option<&dyn Inspection> {
        Some(self)
    }
}

impl ExampleSession {
    // [wait]
    /// Waits in the queue. The server says when it is the turn of the request. It does not say since when, so the request
    /// asks again, and the lease counts from then on.
    async fn wait(
        &self,
        request: &Arc<LockRequest>,
        progress: &Progress<'_>,
    ) -> Result<Grant, AcquireError> {
        let mut next = Arc::clone(request);
        loop {
            let (mut call, since) = self.ask(&next, "wait").await?;
            match self.answer(request, &mut call).await? {
                Reply::Granted(fence) => {
                    return Ok(Grant::new(fence, Term::new(since, request.ttl)));
                }
                Reply::Queued(busy) => progress.busy(busy),
                other => return Err(unexpected(&other).into()),
            }
            self.turn(request, &mut call).await?;
            let now = self.0.context.env().clock.wall();
            next = Arc::new(LockRequest::clone(request).proposed_at(now));
        }
    }

    /// Waits for the turn of the request. A silent server may be gone, so the session asks whether it is there.
    async fn turn(&self, request: &LockRequest, call: &mut Call) -> Result<(), Error> {
        loop {
            match self.in_time(request.limit(), call.reply()).await {
                Some(Ok(Reply::Turn)) => return Ok(()),
                Some(Ok(other)) => return Err(unexpected(&other)),
                Some(Err(error)) => return Err(error),
                None => {
                    let mut ping = call.link().send("ping")?;
                    self.answer(request, &mut ping).await?;
                }
            }
        }
    }
    // [wait]

    // [ask]
    /// Asks for the lock. Also returns when the lease begins at the earliest: before the request is sent.
    async fn ask(&self, request: &LockRequest, how: &str) -> Result<(Call, BootInstant), Error> {
        let link = self.link(request.limit()).await?;
        let client = serde_json::to_string(&*request.client).map_err(|error| {
            Error::new(ErrorKind::InvalidInput, "the client has no text form").with_source(error)
        })?;
        let (key, owner, ttl) = (&request.key, request.owner, request.ttl.as_millis());
        let proposal = request.proposal.as_micros();
        let since = self.now();
        let line = format!("{how}\t{key}\t{owner}\t{ttl}\t{proposal}\t{client}");
        Ok((link.send(&line)?, since))
    }

    /// Returns the answer to a request that was sent. From here on, every error has an unknown effect.
    async fn answer(&self, request: &LockRequest, call: &mut Call) -> Result<Reply, Error> {
        let limit = request.limit();
        match self.in_time(limit, call.reply()).await {
            Some(answer) => answer,
            None => {
                // The answers that follow may never come, either.
                call.link().close();
                let text = format!("no answer within {limit:?}");
                let error = Error::new(ErrorKind::Unreachable, text);
                Err(error.with_unknown_effect())
            }
        }
    }

    /// Returns the connection. Nothing is sent yet, so an error has no effect.
    pub(crate) async fn link(&self, limit: Duration) -> Result<Arc<Link>, Error> {
        let no_connection = move || {
            let text = format!("no connection within {limit:?}");
            Err(Error::new(ErrorKind::Unreachable, text))
        };
        let session = self.clone();
        // A task connects, since a caller may cease to poll. Requests that find no connection wait for the same one: a place in
        // a queue belongs to its connection.
        let connecting = self.0.context.spawn_with_answer(async move {
            let mut link = session.0.link.lock().await;
            if let Some(link) = link.as_ref().filter(|link| link.is_open()) {
                return Ok(Arc::clone(link));
            }
            let connecting = Link::connect(session.0.server, &session.0.context);
            let connected = session.in_time(limit, connecting).await;
            let new = connected.unwrap_or_else(no_connection)?;
            Ok(Arc::clone(link.insert(new)))
        });
        let connected = self.in_time(limit, connecting).await;
        connected.unwrap_or_else(no_connection)
    }
    // [ask]

    async fn renew_one(&self, request: &LockRequest) -> RenewReply {
        if request.mode != Mode::Exclusive {
            return RenewReply::Lost(LostReason::Taken);
        }
        let since = self.now();
        match self.is_done("renew", request).await {
            Ok(true) => RenewReply::Renewed(Term::new(since, request.ttl)),
            Ok(false) => RenewReply::Lost(LostReason::Gone),
            Err(error) => RenewReply::Unknown(error),
        }
    }

    /// Sends a request whose answer is yes or no.
    async fn is_done(&self, how: &str, request: &LockRequest) -> Result<bool, Error> {
        let (key, owner, ttl) = (&request.key, request.owner, request.ttl.as_millis());
        let link = self.link(request.limit()).await?;
        let mut call = link.send(&format!("{how}\t{key}\t{owner}\t{ttl}"))?;
        match self.answer(request, &mut call).await? {
            Reply::Done(done) => Ok(done),
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) async fn in_time<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        within(&*self.0.context.env().clock, self.now() + limit, work).await
    }

    fn now(&self) -> BootInstant {
        self.0.context.env().clock.now()
    }
}

pub(crate) fn unexpected(reply: &Reply) -> Error {
    let (kind, text) = match reply {
        Reply::Refused(text) => (ErrorKind::Refused, text.clone()),
        other => (
            ErrorKind::InvalidResponse,
            format!("{other:?} answers another request"),
        ),
    };
    Error::new(kind, text).with_unknown_effect()
}
