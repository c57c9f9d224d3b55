//! Opens a session on one of the servers.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::clock::{Clock, within};
use leasehold::env::Env;
use leasehold::store::{exact_span, locked};
use leasehold::{Error, ErrorKind};
use leasehold_credentials::{HostPort, TlsClient, race};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::connection::{Connection, connection};
use super::driver::Driver;
use super::jute::{Decoder, Encoder, Malformed};
use super::shared::Opened;
use super::socket::{Socket, Stream};
use crate::url::EnsembleUrl;

/// The servers of an ensemble, and how to log in.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) url: EnsembleUrl,
    tls: Option<TlsClient>,
    /// The servers that failed last. The others are asked first.
    failed: Mutex<HashSet<String>>,
}

/// A session that exists, and the proof that it is ours.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(crate) session: i64,
    password: Vec<u8>,
    pub(crate) timeout: Duration,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({:#x})", self.session)
    }
}

/// What a server offers.
#[derive(Debug)]
pub(crate) enum Greeting {
    /// The session is open on this connection.
    Open(Box<(Connection, Arc<Driver>, Credentials)>),
    /// The session to resume has expired.
    Expired,
}

/// How long the servers may take at least to open a new session, and at most to open any.
const OPEN_MIN: Duration = Duration::from_secs(2);
const OPEN_MAX: Duration = Duration::from_secs(10);

/// The longest answer of a server about itself.
const FACTS_MAX: u64 = 64 * 1024;

/// The longest greeting of a server.
const GREETING_MAX: usize = 1024;

impl Servers {
    /// Checks the files that the URL names.
    pub(crate) fn new(url: EnsembleUrl) -> Result<Self, Error> {
        leasehold_credentials::check_files(url.tls.as_ref(), url.login.as_ref())?;
        Ok(Self::unchecked(url))
    }

    /// Takes the files as they are.
    pub(crate) fn unchecked(url: EnsembleUrl) -> Self {
        let tls = url.tls.clone();
        let tls = tls.map(|source| TlsClient::new(source, &[]));
        let failed = Mutex::default();
        Self { url, tls, failed }
    }

    /// Resumes a session, or opens a new one with about this timeout, on the first server that offers it. Returns the
    /// error of the first server if none does.
    pub(crate) async fn open(
        &self,
        resumed: Option<&Credentials>,
        timeout: Duration,
        env: &Env,
    ) -> Result<Greeting, Error> {
        let mut failure = None;
        let limit = limit(resumed, timeout);
        for server in self.in_order(limit, env).await? {
            match self.open_on(server, resumed, timeout, &env.clock).await {
                Ok(greeting) => {
                    locked(&self.failed).remove(&server.to_string());
                    return Ok(greeting);
                }
                Err(error) => {
                    self.has_failed(server);
                    failure = failure.or(Some(error));
                }
            }
        }
        Err(failure
            .unwrap_or_else(|| Error::new(ErrorKind::InvalidInput, "the URL names no server")))
    }

    /// Notes that a server failed, so that others are asked first from now on.
    pub(crate) fn has_failed(&self, server: impl fmt::Display) {
        locked(&self.failed).insert(server.to_string());
    }

    /// Returns the servers in the order in which to ask them for a session. The first one answered a question just now.
    ///
    /// Servers are raced with a question that leaves nothing behind. The request for a session is not raced: it would move
    /// an existing session to each server in turn, and leave a new one behind on each.
    async fn in_order(&self, limit: Duration, env: &Env) -> Result<Vec<&HostPort>, Error> {
        let mut servers: Vec<&HostPort> = self.url.servers.iter().collect();
        let count = servers.len();
        // Spreads the clients over the servers.
        let first = usize::try_from(env.entropy.next_u64() % count.max(1) as u64);
        servers.rotate_left(first.unwrap_or_default());
        let failed = |server: &&HostPort| locked(&self.failed).contains(&server.to_string());
        servers.sort_by_key(failed);
        if count < 2 {
            return Ok(servers);
        }
        let serving = race(0..count, |number| {
            let serving = self.is_serving(servers[number]);
            async move { serving.await.map(|()| number) }
        });
        let serving = within(&*env.clock, env.clock.now() + limit, serving).await;
        let silent = || {
            let (hosts, limit) = (self.url.hosts().join(", "), exact_span(limit));
            let text = format!("none of {hosts} answers within {limit}");
            Error::new(ErrorKind::Unreachable, text)
        };
        let number = serving
            .unwrap_or_else(|| Err(Vec::new()))
            .map_err(|failures| failures.into_iter().next().unwrap_or_else(silent))?;
        servers[..number]
            .iter()
            .for_each(|server| self.has_failed(server));
        let serving = servers.remove(number);
        servers.sort_by_key(failed);
        servers.insert(0, serving);
        Ok(servers)
    }

    /// Returns once a server shows that it serves clients.
    async fn is_serving(&self, server: &HostPort) -> Result<(), Error> {
        let answer = self.srvr(server).await?;
        if !answer.contains("not currently serving requests") {
            // Also if its configuration does not allow the question.
            return Ok(());
        }
        let text = format!("{server} serves no requests; is it a member of a working ensemble?");
        Err(Error::new(ErrorKind::Unreachable, text).with_not_ready())
    }

    /// Returns what a server says about itself.
    pub(crate) async fn srvr(&self, server: &HostPort) -> Result<String, Error> {
        let mut stream = Socket::open(server, self.tls.as_ref()).await?.stream;
        let broken = |error: std::io::Error| {
            let text = format!("{server} ends the connection");
            Error::new(ErrorKind::Unreachable, text).with_source(error)
        };
        stream.write_all(b"srvr").await.map_err(broken)?;
        stream.flush().await.map_err(broken)?;
        let mut answer = Vec::new();
        let read = stream.take(FACTS_MAX).read_to_end(&mut answer).await;
        // A server may close a connection with TLS without a word, after its answer.
        if answer.is_empty() {
            read.map_err(broken)?;
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// The same on one server.
    pub(crate) async fn open_on(
        &self,
        server: &HostPort,
        resumed: Option<&Credentials>,
        timeout: Duration,
        clock: &Arc<dyn Clock>,
    ) -> Result<Greeting, Error> {
        let limit = limit(resumed, timeout);
        let timeout = resumed.map_or(timeout, |resumed| resumed.timeout);
        let greeting = self.greet(server, resumed, timeout, clock);
        let greeting = within(&**clock, clock.now() + limit, greeting).await;
        greeting
            .unwrap_or_else(|| Err(Error::no_answer_within(limit).with_store(server.to_string())))
    }

    async fn greet(
        &self,
        server: &HostPort,
        resumed: Option<&Credentials>,
        timeout: Duration,
        clock: &Arc<dyn Clock>,
    ) -> Result<Greeting, Error> {
        let mut socket = Socket::open(server, self.tls.as_ref()).await?;
        let stream = &mut socket.stream;
        let asked = clock.now();
        let request = connect_request(resumed, timeout);
        let broken = |error: std::io::Error| {
            let text =
                format!("{server} ends the connection; is it a member of a working ensemble?");
            Error::new(ErrorKind::Unreachable, text).with_source(error)
        };
        stream.write_all(&request).await.map_err(broken)?;
        stream.flush().await.map_err(broken)?;
        let reply = read_frame(stream).await.map_err(broken)?;
        let credentials = connect_reply(&reply).map_err(|_| {
            let text = format!("{server} does not speak ZooKeeper's protocol on this port");
            Error::new(ErrorKind::InvalidResponse, text)
        })?;
        let Some(credentials) = credentials else {
            return Ok(Greeting::Expired);
        };
        if let Some(login) = &self.url.login {
            stream
                .write_all(&auth_request(&login.user, &login.password.read().await?))
                .await
                .map_err(broken)?;
            stream.flush().await.map_err(broken)?;
            let reply = read_frame(stream).await.map_err(broken)?;
            if !matches!(auth_reply(&reply), Ok(0)) {
                let text = format!("{server} refuses the login");
                return Err(Error::new(ErrorKind::Refused, text));
            }
        }
        let opened = Opened {
            session: credentials.session,
            timeout: credentials.timeout,
            server: server.to_string(),
            asked,
        };
        let (connection, driver) = connection(opened, socket, Arc::clone(clock));
        Ok(Greeting::Open(Box::new((connection, driver, credentials))))
    }
}

/// Returns how long servers may take to show that they serve, and then one of them to open a session. A session that exists
/// must be open again before its locks are lost.
fn limit(resumed: Option<&Credentials>, timeout: Duration) -> Duration {
    match resumed {
        Some(resumed) => (resumed.timeout / 3).min(OPEN_MAX),
        None => (timeout / 3).clamp(OPEN_MIN, OPEN_MAX),
    }
}

fn connect_request(resumed: Option<&Credentials>, timeout: Duration) -> Vec<u8> {
    let millis = i32::try_from(timeout.as_millis())
        .unwrap_or(i32::MAX)
        .max(1);
    let mut request = Encoder::default();
    // The protocol's version, and the last transaction seen: none, so that any server is up to date enough. A waiter
    // asks again after each reconnect.
    request.int(0).long(0).int(millis);
    match resumed {
        Some(known) => request.long(known.session).bytes(&known.password),
        None => request.long(0).bytes(&[0; 16]),
    };
    // Not on a server that has lost its ensemble.
    request.bool(false);
    request.framed()
}

/// Reads the session that the server offers; `None` if the one to resume has expired.
fn connect_reply(reply: &[u8]) -> Result<Option<Credentials>, Malformed> {
    let mut reply = Decoder::new(reply);
    let (_version, millis, session) = (reply.int()?, reply.int()?, reply.long()?);
    let password = reply.bytes()?.to_vec();
    if millis == 0 || session == 0 {
        return Ok(None);
    }
    let timeout = Duration::from_millis(u64::try_from(millis).map_err(|_| Malformed)?);
    Ok(Some(Credentials {
        session,
        password,
        timeout,
    }))
}

fn auth_request(user: &str, password: &str) -> Vec<u8> {
    let mut request = Encoder::default();
    request.int(AUTH_ID).int(100).int(0);
    request.text("digest").text(&format!("{user}:{password}"));
    request.framed()
}

/// Reads the code of the answer to a login.
fn auth_reply(reply: &[u8]) -> Result<i32, Malformed> {
    let mut reply = Decoder::new(reply);
    let (id, _transaction, code) = (reply.int()?, reply.long()?, reply.int()?);
    if id == AUTH_ID {
        Ok(code)
    } else {
        Err(Malformed)
    }
}

/// Reads bytes as the answers to a connection, for the fuzz target.
#[cfg(any(test, fuzzing))]
pub(super) fn read_all(bytes: &[u8]) {
    let _ = connect_reply(bytes);
    let _ = auth_reply(bytes);
}

const AUTH_ID: i32 = -4;

async fn read_frame(stream: &mut Box<dyn Stream>) -> std::io::Result<Vec<u8>> {
    let length = usize::try_from(stream.read_i32().await?);
    let length = length.ok().filter(|length| *length <= GREETING_MAX);
    let mut frame = vec![0; length.ok_or(std::io::ErrorKind::InvalidData)?];
    stream.read_exact(&mut frame).await?;
    Ok(frame)
}
