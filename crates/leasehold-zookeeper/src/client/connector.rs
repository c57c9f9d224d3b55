//! Opens a session on one of the servers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{Clock, within};
use leasehold::env::Env;
use leasehold::store::exact_span;
use leasehold::{Error, ErrorKind};
use leasehold_credentials::{HostPort, TlsClient, handshake};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::connection::{Connection, connection};
use super::jute::{Decoder, Encoder, Malformed};
use super::line::{Line, Stream};
use super::shared::Opened;
use crate::url::EnsembleUrl;

/// The servers of an ensemble, and how to log in.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) url: EnsembleUrl,
    tls: Option<TlsClient>,
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
    Open(Box<(Connection, Line, Credentials)>),
    /// The session to resume has expired.
    Expired,
}

/// How long one server may take to open a session.
const SERVER_LIMIT: Duration = Duration::from_secs(2);

/// The longest greeting of a server.
const GREETING_MAX: usize = 1024;

impl Servers {
    /// Checks the files that the URL names.
    pub(crate) fn new(url: EnsembleUrl) -> Result<Self, Error> {
        leasehold_credentials::check_files(url.tls.as_ref(), url.login.as_ref())?;
        let tls = url.tls.clone().map(|files| TlsClient::new(files, &[]));
        Ok(Self { url, tls })
    }

    /// Resumes a session, or opens a new one with about this timeout, on the first server that offers it. Returns the
    /// error of the last server if none does.
    pub(crate) async fn open(
        &self,
        resumed: Option<&Credentials>,
        timeout: Duration,
        env: &Env,
    ) -> Result<Greeting, Error> {
        let count = self.url.servers.len();
        // Spreads the clients over the servers.
        let first = usize::try_from(env.entropy.next_u64() % count as u64).unwrap_or_default();
        let mut failure = None;
        for number in 0..count {
            let server = &self.url.servers[(first + number) % count];
            match self.open_on(server, resumed, timeout, &env.clock).await {
                Ok(greeting) => return Ok(greeting),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Err(failure
            .unwrap_or_else(|| Error::new(ErrorKind::InvalidInput, "the URL names no server")))
    }

    /// The same on one server.
    pub(crate) async fn open_on(
        &self,
        server: &HostPort,
        resumed: Option<&Credentials>,
        timeout: Duration,
        clock: &Arc<dyn Clock>,
    ) -> Result<Greeting, Error> {
        let timeout = resumed.map_or(timeout, |resumed| resumed.timeout);
        // A session that exists must reach another server before it expires.
        let limit = resumed.map_or(SERVER_LIMIT, |resumed| {
            SERVER_LIMIT.min(resumed.timeout / 3)
        });
        let greeting = self.greet(server, resumed, timeout, clock);
        let greeting = within(&**clock, clock.now() + limit, greeting).await;
        greeting.unwrap_or_else(|| {
            let text = format!("{server} does not answer within {}", exact_span(limit));
            Err(Error::new(ErrorKind::Unreachable, text))
        })
    }

    async fn greet(
        &self,
        server: &HostPort,
        resumed: Option<&Credentials>,
        timeout: Duration,
        clock: &Arc<dyn Clock>,
    ) -> Result<Greeting, Error> {
        let mut stream = self.connect(server).await?;
        let asked = clock.now();
        let request = connect_request(resumed, timeout);
        let broken = |error: std::io::Error| {
            let text =
                format!("{server} ends the connection; is it a member of a working ensemble?");
            Error::new(ErrorKind::Unreachable, text).with_source(error)
        };
        stream.write_all(&request).await.map_err(broken)?;
        stream.flush().await.map_err(broken)?;
        let reply = read_frame(&mut stream).await.map_err(broken)?;
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
            let reply = read_frame(&mut stream).await.map_err(broken)?;
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
        let (connection, line) = connection(opened, stream, Arc::clone(clock));
        Ok(Greeting::Open(Box::new((connection, line, credentials))))
    }

    /// Connects to a server.
    pub(crate) async fn connect(&self, server: &HostPort) -> Result<Box<dyn Stream>, Error> {
        let address = (server.host.as_str(), server.port);
        let stream = TcpStream::connect(address).await.map_err(|error| {
            let text = format!("no connection to {server}: {error}");
            Error::new(ErrorKind::Unreachable, text).with_source(error)
        })?;
        // Without it, small requests wait for the answers to earlier ones. They then are slower, not wrong.
        let _ = stream.set_nodelay(true);
        Ok(match &self.tls {
            Some(tls) => Box::new(handshake(tls.config().await?, stream, &server.host).await?),
            None => Box::new(stream),
        })
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
