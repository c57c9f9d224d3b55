//! A socket that moves to the runtime that polls it.

use std::io;

use leasehold::Error;
use leasehold_credentials::{HostPort, TlsClient, TlsStream, handshake};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connection to a server.
pub(super) struct Socket {
    pub(super) stream: Box<dyn Stream>,
    /// Keeps the connection open if the runtime that drives it ends.
    kept: std::net::TcpStream,
}

/// The bytes of a connection, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {
    /// Returns the TCP connection.
    fn tcp(&mut self) -> &mut TcpStream;
}

impl Stream for TcpStream {
    fn tcp(&mut self) -> &mut TcpStream {
        self
    }
}

impl Stream for TlsStream<TcpStream> {
    fn tcp(&mut self) -> &mut TcpStream {
        self.get_mut().0
    }
}

impl Socket {
    /// Connects to a server, with TLS if there is a configuration.
    pub(super) async fn open(server: &HostPort, tls: Option<&TlsClient>) -> Result<Self, Error> {
        let failed = |error| Error::no_connection(error).with_store(server.to_string());
        let connecting = leasehold_credentials::connect(&server.host, server.port);
        let tcp = connecting.await.map_err(failed)?;
        // Without it, small requests wait for the answers to earlier ones. They then are slower, not wrong.
        let _ = tcp.set_nodelay(true);
        let kept = tcp.into_std().map_err(failed)?;
        let tcp = registered_here(&kept).map_err(failed)?;
        let stream: Box<dyn Stream> = match tls {
            Some(tls) => Box::new(handshake(tls.config().await?, tcp, &server.host).await?),
            None => Box::new(tcp),
        };
        Ok(Self { stream, kept })
    }

    /// Registers the connection at the runtime of the caller, and at no other one.
    pub(super) fn move_here(&mut self) -> io::Result<()> {
        *self.stream.tcp() = registered_here(&self.kept)?;
        Ok(())
    }
}

fn registered_here(kept: &std::net::TcpStream) -> io::Result<TcpStream> {
    TcpStream::from_std(kept.try_clone()?)
}
