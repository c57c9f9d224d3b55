//! Sockets to the servers that a URL names.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use leasehold_credentials::connect;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::server::Server;

/// A connection without encryption and login.
pub(crate) struct Socket(Box<dyn Stream>);

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Connects to one server: to the first of its addresses that accepts.
pub(crate) async fn open(server: &Server, config: &Config) -> io::Result<Socket> {
    let name = match (&server.host, server.address) {
        (_, Some(address)) => address.to_string(),
        (Host::Tcp(name), None) => name.clone(),
        #[cfg(unix)]
        (Host::Unix(folder), None) => {
            let path = folder.join(format!(".s.PGSQL.{}", server.port));
            return Ok(Socket(Box::new(UnixStream::connect(path).await?)));
        }
    };
    let stream = connect(&name, server.port).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(config.get_tcp_user_timeout().copied())?;
    if config.get_keepalives() {
        let mut keepalive = TcpKeepalive::new().with_time(config.get_keepalives_idle());
        if let Some(interval) = config.get_keepalives_interval() {
            keepalive = keepalive.with_interval(interval);
        }
        if let Some(retries) = config.get_keepalives_retries() {
            keepalive = keepalive.with_retries(retries);
        }
        socket.set_tcp_keepalive(&keepalive)?;
    }
    Ok(Socket(Box::new(stream)))
}
