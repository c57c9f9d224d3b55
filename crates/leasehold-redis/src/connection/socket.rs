use std::io::{self, Read as _, Write as _};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::Duration;

use leasehold::store::locked;
use leasehold::{Error, ErrorKind};
use leasehold_credentials::TlsStream;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::rustls::ClientConnection;

use super::tls::Tls;
use crate::resp::{ParseError, Parser};
use crate::url::{Address, RedisUrl};

/// A stream of bytes to a server, while it logs in. It belongs to the runtime that opens it.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection to a server, which any thread may read and write. It belongs to no runtime and never blocks.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(super) plain: PlainSocket,
    /// The encryption, if there is one.
    tls: Option<Mutex<ClientConnection>>,
}

#[derive(Debug)]
pub(super) enum PlainSocket {
    Tcp(std::net::TcpStream),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

/// The longest time that the server's kernel may leave data unacknowledged. It ends half-open
/// connections.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(20);

/// When and how often the kernel probes a silent connection.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);

impl Stream {
    /// Connects to the server.
    pub(crate) async fn open(url: &RedisUrl, tls: Option<&Tls>) -> Result<Self, Error> {
        match &url.address {
            #[cfg(unix)]
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)
                    .await
                    .map_err(Error::no_connection)?;
                Ok(Self::Unix(stream))
            }
            // No URL has such an address.
            #[cfg(not(unix))]
            Address::Unix(_) => Err(Error::no_connection(io::Error::from(
                io::ErrorKind::Unsupported,
            ))),
            Address::Tcp { server, .. } => {
                let connected = leasehold_credentials::connect(&server.host, server.port);
                let stream = connected.await.map_err(Error::no_connection)?;
                prepare(&stream).map_err(Error::no_connection)?;
                match tls {
                    Some(tls) => Ok(Self::Tls(Box::new(tls.wrap(stream, &server.host).await?))),
                    None => Ok(Self::Tcp(stream)),
                }
            }
        }
    }

    /// Returns the socket, which no longer belongs to the runtime.
    pub(crate) fn into_socket(self) -> io::Result<Socket> {
        let (plain, tls) = match self {
            Self::Tcp(stream) => (PlainSocket::Tcp(stream.into_std()?), None),
            #[cfg(unix)]
            Self::Unix(stream) => (PlainSocket::Unix(stream.into_std()?), None),
            Self::Tls(stream) => {
                let (stream, tls) = stream.into_inner();
                (PlainSocket::Tcp(stream.into_std()?), Some(Mutex::new(tls)))
            }
        };
        Ok(Socket { plain, tls })
    }
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
            #[cfg(unix)]
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
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

impl Socket {
    /// Reads into `room` what has arrived. Returns the number of bytes, which is 0 at the end of the stream.
    pub(crate) fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &self.tls else {
            return (&self.plain).read(room);
        };
        let mut tls = locked(tls);
        loop {
            match tls.reader().read(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            if tls.read_tls(&mut &self.plain)? == 0 {
                return Ok(0);
            }
            let processed = tls.process_new_packets();
            // The peer may want an answer, or the reason why this side ends the connection.
            let _ = self.flush_tls(&mut tls);
            processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }

    /// Returns whether a read that filled less than its room has left nothing to read.
    pub(crate) fn is_drained_by_short_read(&self) -> bool {
        self.tls.is_none()
    }

    /// Writes what fits into the kernel's buffer. An encrypted socket also keeps some bytes until
    /// [`flush`](Self::flush).
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &self.tls else {
            return (&self.plain).write(bytes);
        };
        let mut tls = locked(tls);
        self.flush_tls(&mut tls)?;
        tls.writer().write(bytes)
    }

    /// Hands to the kernel what an encrypted socket keeps.
    pub(crate) fn flush(&self) -> io::Result<()> {
        match &self.tls {
            Some(tls) => self.flush_tls(&mut locked(tls)),
            None => Ok(()),
        }
    }

    fn flush_tls(&self, tls: &mut ClientConnection) -> io::Result<()> {
        while tls.wants_write() {
            if tls.write_tls(&mut &self.plain)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Makes the close that follows drop what is not delivered. After an ordinary close the kernel goes on
    /// sending, and an attempt that was given up could take the lock seconds later. The end of the process is an
    /// ordinary close: what the client wrote last, such as a release, still arrives.
    pub(crate) fn abort(&self) {
        let stream = match &self.plain {
            PlainSocket::Tcp(stream) => stream,
            // A socket of this machine has no data on its way.
            #[cfg(unix)]
            PlainSocket::Unix(_) => return,
        };
        if let Err(error) = SockRef::from(stream).set_linger(Some(Duration::ZERO)) {
            tracing::debug!(%error, "the close of the connection does not drop what is on its way");
        }
    }

    /// Returns two sockets that are connected with each other.
    #[cfg(test)]
    pub(crate) fn pair() -> [Self; 2] {
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        [one, other].map(|stream| {
            stream.set_nonblocking(true).unwrap();
            Self {
                plain: PlainSocket::Unix(stream),
                tls: None,
            }
        })
    }
}

impl io::Read for &PlainSocket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            PlainSocket::Tcp(stream) => (&mut &*stream).read(room),
            #[cfg(unix)]
            PlainSocket::Unix(stream) => (&mut &*stream).read(room),
        }
    }
}

impl io::Write for &PlainSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            PlainSocket::Tcp(stream) => (&mut &*stream).write(bytes),
            #[cfg(unix)]
            PlainSocket::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn broken(error: &io::Error) -> Error {
    if let Some(refusal) = leasehold_credentials::refusal(error) {
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
        let opened = Stream::open(&url, None).await;
        let (mut served, _) = server.accept().await.unwrap();
        let socket = opened.unwrap().into_socket().unwrap();
        let mut written = 0;
        while let Ok(count) = socket.write(&[b'x'; 4_096]) {
            written += count;
        }
        if aborts {
            socket.abort();
        }
        drop(socket);
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
