use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use leasehold::store::background::blocking;
use leasehold::{Error, ErrorKind};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};
use tokio_rustls::client::TlsStream;

use super::tls::{self, Tls};
use crate::resp::{ParseError, Parser};
use crate::url::{Address, RedisUrl};

/// A stream of bytes to a server. The I/O thread owns it.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The half of a stream that the I/O thread reads. With TLS it writes, too.
#[derive(Debug)]
pub(crate) enum ReadHalf {
    Tcp(tcp::OwnedReadHalf),
    Unix(unix::OwnedReadHalf),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The half of a plain stream that any thread may write to, one at a time.
///
/// `None` if it is closed.
#[derive(Debug)]
pub(crate) struct WriteHalf(Option<Half>);

#[derive(Debug)]
enum Half {
    Tcp(tcp::OwnedWriteHalf),
    Unix(unix::OwnedWriteHalf),
}

/// The longest time that the server's kernel may leave data unacknowledged. It ends half-open
/// connections.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(20);

/// When and how often the kernel probes a silent connection.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);

impl Stream {
    /// Connects to the server.
    pub(crate) async fn open(url: &RedisUrl, tls: &Tls) -> Result<Self, Error> {
        let failed = |error: io::Error| {
            let message = format!("no connection: {error}");
            Error::new(ErrorKind::Unreachable, message).with_source(error)
        };
        match &url.address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(failed)?;
                Ok(Self::Unix(stream))
            }
            Address::Tcp {
                host,
                port,
                tls: encrypted,
            } => {
                let stream = connect(host, *port).await.map_err(failed)?;
                prepare(&stream).map_err(failed)?;
                if *encrypted {
                    return Ok(Self::Tls(Box::new(tls.wrap(stream, host).await?)));
                }
                Ok(Self::Tcp(stream))
            }
        }
    }

    /// Splits the stream, so that other threads can write to it if it is a plain one.
    pub(crate) fn split(self) -> (ReadHalf, Option<WriteHalf>) {
        match self {
            Self::Tcp(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Tcp(read), Some(WriteHalf(Some(Half::Tcp(write)))))
            }
            Self::Unix(stream) => {
                let (read, write) = stream.into_split();
                (
                    ReadHalf::Unix(read),
                    Some(WriteHalf(Some(Half::Unix(write)))),
                )
            }
            Self::Tls(stream) => (ReadHalf::Tls(stream), None),
        }
    }
}

/// Connects to the first address of `host` that accepts. The lookup of tokio would panic if the system has no
/// room for a thread.
async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return TcpStream::connect((address, port)).await;
    }
    let name = host.to_owned();
    let found = blocking(move || (name.as_str(), port).to_socket_addrs()).await;
    let addresses: Vec<SocketAddr> = found.map_err(io::Error::other)??.collect();
    TcpStream::connect(addresses.as_slice()).await
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    Ok(())
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, room),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, room),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, room),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

impl ReadHalf {
    /// Reads into `room`. Returns the number of bytes, which is 0 at the end of the stream.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(room);
        let read = match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, &mut room),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, &mut room),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, &mut room),
        };
        read.map_ok(|()| room.filled().len())
    }

    /// Makes the close that follows drop what is not delivered. After an ordinary close the kernel goes on
    /// sending, and an attempt that was given up could take the lock seconds later. The end of the process is an
    /// ordinary close: what the client wrote last, such as a release, still arrives.
    pub(crate) fn abort(&self) {
        let stream: &TcpStream = match self {
            Self::Tcp(stream) => stream.as_ref(),
            Self::Tls(stream) => stream.get_ref().0,
            // A socket of this machine has no data on its way.
            Self::Unix(_) => return,
        };
        if let Err(error) = stream.set_zero_linger() {
            tracing::debug!(%error, "the close of the connection does not drop what is on its way");
        }
    }

    /// The encrypted stream, if it is one.
    pub(crate) fn encrypted(&mut self) -> Option<&mut TlsStream<TcpStream>> {
        match self {
            Self::Tls(stream) => Some(stream),
            Self::Tcp(_) | Self::Unix(_) => None,
        }
    }
}

impl WriteHalf {
    /// A half that takes nothing.
    #[cfg(test)]
    pub(crate) fn closed() -> Self {
        Self(None)
    }

    /// Writes what fits into the kernel's buffer.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Some(Half::Tcp(stream)) => stream.try_write(bytes),
            Some(Half::Unix(stream)) => stream.try_write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Waits until the kernel's buffer has room. Only the I/O thread may call this.
    pub(crate) fn poll_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.0 {
            Some(Half::Tcp(stream)) => stream.as_ref().poll_write_ready(context),
            Some(Half::Unix(stream)) => stream.as_ref().poll_write_ready(context),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        // An ordinary drop would end the stream in order, and what was written would still arrive after
        // `ReadHalf::abort`.
        match self.0.take() {
            Some(Half::Tcp(stream)) => stream.forget(),
            Some(Half::Unix(stream)) => stream.forget(),
            None => {}
        }
    }
}

pub(crate) fn broken(error: &io::Error) -> Error {
    if let Some(refusal) = tls::refusal(error) {
        return refusal;
    }
    let message = format!("the connection failed: {error}");
    Error::new(ErrorKind::Unreachable, message)
}

pub(crate) fn unreadable(error: ParseError) -> Error {
    let message = match error {
        ParseError::Malformed => {
            "the reply is not of the Redis protocol; is it a Redis server?".to_owned()
        }
        ParseError::TooLong(length) => format!(
            "the reply has at least {length} bytes, and the limit is {} bytes; is it a Redis \
             server, or does a key with the name of a lock hold other data?",
            Parser::VALUE_MAX
        ),
    };
    Error::new(ErrorKind::InvalidResponse, message)
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpSocket;

    use super::*;

    /// What a server gets that reads nothing until the client is gone, and how much the client wrote.
    async fn delivered(aborts: bool) -> (usize, usize) {
        let server = TcpSocket::new_v4().unwrap();
        server.set_recv_buffer_size(4_096).unwrap();
        server.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let server = server.listen(1).unwrap();
        let port = server.local_addr().unwrap().port();
        let url = RedisUrl::parse(&format!("redis://127.0.0.1:{port}")).unwrap();
        let opened = Stream::open(&url, &Tls::new(None).unwrap()).await;
        let (mut served, _) = server.accept().await.unwrap();
        let (read, write) = opened.unwrap().split();
        let write = write.unwrap();
        let mut written = 0;
        while let Ok(count) = write.try_write(&[b'x'; 4_096]) {
            written += count;
        }
        if aborts {
            read.abort();
        }
        drop((read, write));
        let mut got = Vec::new();
        // The end may be a reset.
        let _ = served.read_to_end(&mut got).await;
        (got.len(), written)
    }

    #[tokio::test]
    async fn ordinary_end_delivers_what_was_written() {
        let (got, written) = delivered(false).await;
        assert_eq!(got, written);
    }

    #[tokio::test]
    async fn abort_drops_what_was_not_delivered() {
        let (got, written) = delivered(true).await;
        assert!(got < written, "{got} of {written}");
    }
}
