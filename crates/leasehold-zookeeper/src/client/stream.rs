//! A socket that moves to the runtime that polls it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use leasehold_credentials::TlsStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection to a server, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {
    /// Registers the socket at the runtime of the caller, and at no other one.
    fn move_here(&mut self) -> io::Result<()>;
}

/// A TCP connection.
pub(super) struct Socket {
    /// Keeps the connection open if the runtime that serves it ends.
    kept: std::net::TcpStream,
    registered: TcpStream,
}

impl Socket {
    /// Takes a connection of this runtime.
    pub(super) fn of(registered: TcpStream) -> io::Result<Self> {
        let kept = registered.into_std()?;
        let registered = TcpStream::from_std(kept.try_clone()?)?;
        Ok(Self { kept, registered })
    }
}

impl Stream for Socket {
    fn move_here(&mut self) -> io::Result<()> {
        self.registered = TcpStream::from_std(self.kept.try_clone()?)?;
        Ok(())
    }
}

impl Stream for TlsStream<Socket> {
    fn move_here(&mut self) -> io::Result<()> {
        self.get_mut().0.move_here()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.registered).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.registered).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.registered).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.registered).poll_shutdown(context)
    }
}
