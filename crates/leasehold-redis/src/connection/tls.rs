use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold::{Error, ErrorKind};
use leasehold_credentials::{TlsClient, TlsSource, TlsStream, handshake};
use tokio::net::TcpStream;

use crate::url::Address;

/// The encryption of connections, and whether a server answers its handshake.
#[derive(Debug)]
pub(crate) struct Tls {
    client: TlsClient,
    /// Whether the server has yet to answer a handshake.
    is_open: AtomicBool,
}

/// A handshake of this length may have reached a server that does not speak TLS: it waits for the end of a line.
/// Shorter than a client waits for its first connections.
pub(crate) const SLOW_HANDSHAKE: Duration = Duration::from_secs(1);

impl Tls {
    pub(crate) fn new(source: TlsSource) -> Self {
        Self {
            client: TlsClient::new(source, &[]),
            is_open: AtomicBool::new(false),
        }
    }

    /// Returns the error for a handshake with `address` that the server has yet to answer, if there is one.
    pub(crate) fn unanswered(&self, address: &Address) -> Option<Error> {
        self.is_open.load(Ordering::Relaxed).then(|| {
            let text = format!(
                "no TLS handshake from {address}: does the server speak TLS on this port? If not, use \
                 redis://{address}"
            );
            Error::new(ErrorKind::Unreachable, text)
        })
    }

    /// Encrypts `stream`, to the server that calls itself `host`.
    pub(crate) async fn wrap(
        &self,
        stream: TcpStream,
        host: &str,
    ) -> Result<TlsStream<TcpStream>, Error> {
        let config = self.client.config().await?;
        let _handshake = Handshake::begin(&self.is_open);
        handshake(config, stream, host).await
    }
}

/// Marks a handshake as open until it ends or is given up.
struct Handshake<'a>(&'a AtomicBool);

impl<'a> Handshake<'a> {
    fn begin(is_open: &'a AtomicBool) -> Self {
        is_open.store(true, Ordering::Relaxed);
        Self(is_open)
    }
}

impl Drop for Handshake<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
