//! Waits for a socket on the runtime that polls the caller.

use std::io;
#[cfg(unix)]
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
#[cfg(unix)]
use tokio::io::unix::AsyncFd;
#[cfg(windows)]
use tokio::net::TcpStream;

use super::socket::{PlainSocket, Socket};

/// The registration of a socket at one runtime. No other runtime may have the socket meanwhile.
#[derive(Debug)]
pub(crate) struct Readiness {
    #[cfg(unix)]
    registered: AsyncFd<Arc<Socket>>,
    /// A duplicate of the socket: on Windows the runtime waits only for sockets that it owns.
    #[cfg(windows)]
    registered: TcpStream,
}

#[cfg(unix)]
impl Readiness {
    /// Registers the socket at the runtime of the caller.
    pub(crate) fn of(socket: &Arc<Socket>) -> io::Result<Self> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        #[expect(
            deprecated,
            reason = "its successor is unsafe, for descriptors that change; that of a socket never does"
        )]
        let registered = AsyncFd::with_interest(Arc::clone(socket), interest)?;
        Ok(Self { registered })
    }

    /// Waits until something arrives. After a reset of the readiness, the next call waits for what arrives from then
    /// on.
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ready = ready!(self.registered.poll_read_ready(context));
        Poll::Ready(ready.map(|mut ready| ready.clear_ready()))
    }

    /// Waits until the kernel takes bytes again.
    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ready = ready!(self.registered.poll_write_ready(context));
        Poll::Ready(ready.map(|mut ready| ready.clear_ready()))
    }
}

#[cfg(windows)]
impl Readiness {
    /// Registers the socket at the runtime of the caller.
    pub(crate) fn of(socket: &Arc<Socket>) -> io::Result<Self> {
        let PlainSocket::Tcp(stream) = &socket.plain;
        let registered = TcpStream::from_std(stream.try_clone()?)?;
        Ok(Self { registered })
    }

    /// Waits until something arrives. After a reset of the readiness, the next call waits for what arrives from then
    /// on.
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ready = ready!(self.registered.poll_read_ready(context));
        self.clear(Interest::READABLE);
        Poll::Ready(ready)
    }

    /// Waits until the kernel takes bytes again.
    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ready = ready!(self.registered.poll_write_ready(context));
        self.clear(Interest::WRITABLE);
        Poll::Ready(ready)
    }

    /// Resets the readiness, as an operation does that would block.
    fn clear(&self, interest: Interest) {
        let blocks = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        // The error is the one above.
        let _ = self.registered.try_io(interest, blocks);
    }
}

#[cfg(unix)]
impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        match &self.plain {
            PlainSocket::Tcp(stream) => stream.as_raw_fd(),
            PlainSocket::Unix(stream) => stream.as_raw_fd(),
        }
    }
}
