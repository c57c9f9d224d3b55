//! Opens connections.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::store::BoxFuture;
use leasehold::{Error, ErrorKind};
use leasehold_credentials::{TlsClient, race};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Notification, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::connection::bounded::{Bounded, BoundedTls, Heard};
use crate::connection::failure;
use crate::connection::socket::{self, Socket};
use crate::server::Server;
use crate::url::Settings;

/// The addresses of the servers, and the encryption.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) settings: Settings,
    tls: Option<TlsClient>,
    /// The server that accepted the last connection. The next one tries it first.
    last: AtomicUsize,
    /// Whether a server ever accepted a connection.
    was_reached: AtomicBool,
}

/// What reads and writes a connection. It yields notifications, and ends with the connection.
pub(crate) struct Driver {
    connection: Pin<Box<dyn DriveOne + Send>>,
    ended: Ended,
}

/// Why a connection ended. The requests that were on it only learn that it did.
pub(crate) type Ended = Arc<OnceLock<Error>>;

trait DriveOne {
    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Notification, Option<tokio_postgres::Error>>>;
}

impl<S, T> DriveOne for Connection<S, T>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Notification, Option<tokio_postgres::Error>>> {
        let connection = self.get_mut();
        loop {
            match connection.poll_message(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(AsyncMessage::Notification(found)))) => {
                    return Poll::Ready(Ok(found));
                }
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(Some(error))),
                Poll::Ready(None) => return Poll::Ready(Err(None)),
            }
        }
    }
}

impl Driver {
    /// Drives the connection until a notification comes; `None` at its end.
    pub(crate) async fn next(&mut self) -> Option<Notification> {
        match poll_fn(|context| self.connection.as_mut().poll_next(context)).await {
            Ok(found) => Some(found),
            Err(error) => {
                if let Some(error) = error {
                    self.ended.get_or_init(|| failure::of_connecting(error));
                }
                None
            }
        }
    }

    /// Drives the connection to its end.
    pub(crate) async fn run(mut self) {
        while self.next().await.is_some() {}
    }

    /// Why the connection ended, once it has.
    pub(crate) fn ended(&self) -> Ended {
        Arc::clone(&self.ended)
    }
}

impl Place {
    pub(crate) fn new(settings: Settings) -> Self {
        let tls = settings.tls.clone();
        let tls = tls.map(|files| TlsClient::new(files, &[]));
        Self {
            settings,
            tls,
            last: AtomicUsize::new(0),
            was_reached: AtomicBool::new(false),
        }
    }

    /// Returns whether anything may have been sent to a server.
    pub(crate) fn was_reached(&self) -> bool {
        self.was_reached.load(Ordering::Acquire)
    }

    /// Reads the files of certificates and password, connects, and logs in. Of several servers, the first that accepts
    /// writes is taken: each is asked when the one before it has failed, or has not answered for a moment.
    ///
    /// Counts in `heard` what comes from the servers.
    pub(crate) fn connect(
        self: &Arc<Self>,
        heard: &Heard,
    ) -> BoxFuture<'static, Result<(Client, Driver), Error>> {
        let (place, heard) = (Arc::clone(self), heard.clone());
        Box::pin(async move {
            let count = place.settings.servers.len();
            let last = place.last.load(Ordering::Relaxed);
            let order: Vec<usize> = (0..count).map(|number| (number + last) % count).collect();
            let log_in = |number| Arc::clone(&place).log_in(number, heard.clone());
            let raced = race(order, log_in).await;
            let (number, opened) = raced.map_err(failure::of_all)?;
            place.last.store(number, Ordering::Relaxed);
            place.was_reached.store(true, Ordering::Release);
            Ok(opened)
        })
    }

    /// Logs in to one server. Both outcomes name it.
    async fn log_in(
        self: Arc<Self>,
        number: usize,
        heard: Heard,
    ) -> Result<(usize, (Client, Driver)), (String, Error)> {
        let server = &self.settings.servers[number];
        let opening = self.open(server, &heard);
        let opened = match self.settings.config.get_connect_timeout() {
            Some(limit) => {
                let opened = within(&SystemClock, SystemClock.now() + *limit, opening).await;
                opened.unwrap_or_else(|| Err(Error::no_connection_within(*limit)))
            }
            None => opening.await,
        };
        opened
            .map(|opened| (number, opened))
            .map_err(|error| (server.to_string(), error))
    }

    async fn open(&self, server: &Server, heard: &Heard) -> Result<(Client, Driver), Error> {
        let mut config = self.settings.config.clone();
        if let Some(file) = &self.settings.password {
            config.password(file.read(&config, server).await?);
        }
        let socket = socket::open(server, &config).await;
        let socket = socket.map_err(Error::no_connection)?;
        let opened = match &self.tls {
            None => {
                let stream = Bounded::new(socket, heard.clone());
                config.connect_raw(stream, NoTls).await.map(opened)
            }
            Some(tls) => {
                let mut tls = MakeRustlsConnect::new((*tls.config().await?).clone());
                let Ok(tls) = MakeTlsConnect::<Socket>::make_tls_connect(&mut tls, server.name());
                let tls = BoundedTls(tls, heard.clone());
                config.connect_raw(socket, tls).await.map(opened)
            }
        };
        let (client, mut driver) = opened.map_err(failure::of_connecting)?;
        if config.get_target_session_attrs() == TargetSessionAttrs::ReadWrite {
            check_writes(&client, &mut driver).await?;
        }
        Ok((client, driver))
    }
}

fn opened<S, T>((client, connection): (Client, Connection<S, T>)) -> (Client, Driver)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let driver = Driver {
        connection: Box::pin(connection),
        ended: Ended::default(),
    };
    (client, driver)
}

/// Fails unless the session may write.
async fn check_writes(client: &Client, driver: &mut Driver) -> Result<(), Error> {
    let ended = driver.ended();
    let driving = async { while driver.next().await.is_some() {} };
    let answer = tokio::select! {
        answer = client.simple_query("show transaction_read_only") => answer,
        () = driving => {
            let closed = || Error::new(ErrorKind::Unreachable, "the server closed the connection");
            return Err(ended.get().cloned().unwrap_or_else(closed));
        }
    };
    let rows = answer.map_err(failure::of_connecting)?;
    let is_read_only = rows.iter().any(|row| match row {
        SimpleQueryMessage::Row(row) => row.get(0) == Some("on"),
        _ => false,
    });
    match is_read_only {
        true => Err(failure::read_only()),
        false => Ok(()),
    }
}
