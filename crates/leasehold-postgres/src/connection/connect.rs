//! Opens connections.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use leasehold::Error;
use leasehold::store::BoxFuture;
use leasehold_credentials::TlsClient;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Notification, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::connection::failure;
use crate::url::Settings;

/// The address of the server, and the encryption.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) settings: Settings,
    tls: Option<TlsClient>,
}

/// What reads and writes a connection. It yields notifications, and ends with the connection.
pub(crate) struct Driver(Pin<Box<dyn DriveOne + Send>>);

trait DriveOne {
    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Notification>>;
}

impl<S, T> DriveOne for Connection<S, T>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Notification>> {
        let connection = self.get_mut();
        loop {
            match connection.poll_message(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(AsyncMessage::Notification(found)))) => {
                    return Poll::Ready(Some(found));
                }
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(None),
            }
        }
    }
}

impl Driver {
    /// Drives the connection until a notification comes; `None` at its end.
    pub(crate) async fn next(&mut self) -> Option<Notification> {
        poll_fn(|context| self.0.as_mut().poll_next(context)).await
    }

    /// Drives the connection to its end.
    pub(crate) async fn run(mut self) {
        while self.next().await.is_some() {}
    }
}

impl Place {
    pub(crate) fn new(settings: Settings) -> Self {
        let tls = settings.tls.clone();
        let tls = tls.map(|files| TlsClient::new(files, &[]));
        Self { settings, tls }
    }

    /// Reads the files of certificates and password, connects, and logs in.
    pub(crate) fn connect(self: &Arc<Self>) -> BoxFuture<'static, Result<(Client, Driver), Error>> {
        let place = Arc::clone(self);
        Box::pin(async move {
            let mut config = place.settings.config.clone();
            if let Some(file) = &place.settings.password {
                config.password(file.read(&config).await?);
            }
            let Some(tls) = &place.tls else {
                return opened(config.connect(NoTls).await);
            };
            let tls = MakeRustlsConnect::new((*tls.config().await?).clone());
            opened(config.connect(tls).await)
        })
    }
}

fn opened<T>(
    connected: Result<(Client, Connection<Socket, T>), tokio_postgres::Error>,
) -> Result<(Client, Driver), Error>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (client, connection) = connected.map_err(failure::of_connecting)?;
    Ok((client, Driver(Box::pin(connection))))
}
