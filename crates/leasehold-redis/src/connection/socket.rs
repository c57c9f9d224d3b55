use std::io;
use std::time::Duration;

use leasehold::{Error, ErrorKind};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::tls::Tls;
use crate::url::{Address, RedisUrl};

/// A stream of bytes to a server, whatever it runs over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// How long data may stay unacknowledged by the other side's kernel: half-open connections end
/// there.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(20);

/// After how long a silent connection is asked whether it still stands, and how often.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);

/// Opens a stream to the server.
pub(super) async fn open(url: &RedisUrl, tls: &Tls) -> Result<Box<dyn Stream>, Error> {
    let failed = |error: io::Error| {
        let message = format!("no connection: {error}");
        Error::new(ErrorKind::Unreachable, message).with_source(error)
    };
    match &url.address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).await.map_err(failed)?;
            Ok(Box::new(stream))
        }
        Address::Tcp {
            host,
            port,
            tls: encrypted,
        } => {
            let stream = TcpStream::connect((host.as_str(), *port));
            let stream = stream.await.map_err(failed)?;
            prepare(&stream).map_err(failed)?;
            if *encrypted {
                return Ok(Box::new(tls.wrap(stream, host).await?));
            }
            Ok(Box::new(stream))
        }
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // Closing must *abort*. An ordinary close goes on delivering what was written, and an attempt
    // that its caller has given up could take the lock seconds later.
    stream.set_zero_linger()?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    Ok(())
}
