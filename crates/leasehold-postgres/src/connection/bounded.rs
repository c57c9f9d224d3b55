//! Bounds what a server may send: a client reads a whole message, and whole answers, into its memory.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use leasehold::store::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

/// The largest message. A record has 1 MiB at most.
const MESSAGE_MAX: u64 = 8 << 20;

/// The largest answer to one request. The largest one lists locks.
const ANSWER_MAX: u64 = 64 << 20;

/// The most that a server may send until it is ready for requests, and the most settings that it may report afterwards.
const LOGIN_MAX: u64 = 256 << 10;

/// A stream from a server, which fails once the server sends too much.
#[derive(Debug)]
pub(crate) struct Bounded<S> {
    stream: S,
    frames: Frames,
    heard: Heard,
}

/// Counts how often something came from a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard(Arc<AtomicU64>);

/// TLS whose content is bounded.
pub(crate) struct BoundedTls<C>(pub(crate) C, pub(crate) Heard);

/// The server sent too much.
#[derive(Debug)]
pub(crate) struct Excess(String);

/// What has come so far.
#[derive(Debug, Default)]
struct Frames {
    /// The beginning of the next message: its tag and its length.
    header: Vec<u8>,
    /// How much of the current message is still to come.
    rest: u64,
    is_ready: bool,
    /// The size of the login or of the current answer.
    answer: u64,
    /// The size of all settings that the server reported after the login. The driver keeps them.
    settings: u64,
}

const HEADER: usize = 5;

impl Frames {
    fn accept(&mut self, mut bytes: &[u8]) -> Result<(), Excess> {
        while !bytes.is_empty() {
            if self.rest > 0 {
                let taken = self.rest.min(bytes.len() as u64);
                self.rest -= taken;
                bytes = bytes.get(taken as usize..).unwrap_or_default();
                continue;
            }
            let missing = HEADER - self.header.len();
            let (header, others) = bytes.split_at(missing.min(bytes.len()));
            self.header.extend_from_slice(header);
            bytes = others;
            if let [tag, length @ ..] = &*self.header
                && let Ok(length) = <[u8; 4]>::try_from(length)
            {
                // The length counts itself.
                let length = u64::from(u32::from_be_bytes(length));
                let tag = *tag;
                self.header.clear();
                self.rest = length.saturating_sub(4);
                self.begin(tag, length + 1)?;
            }
        }
        Ok(())
    }

    /// Counts the next message.
    fn begin(&mut self, tag: u8, size: u64) -> Result<(), Excess> {
        const NOTICE: u8 = b'N';
        const NOTIFICATION: u8 = b'A';
        const SETTING: u8 = b'S';
        const READY: u8 = b'Z';
        if size > MESSAGE_MAX {
            return Err(Excess::of("in one message", MESSAGE_MAX));
        }
        match tag {
            READY => (self.is_ready, self.answer) = (true, 0),
            // Nothing keeps them.
            NOTICE | NOTIFICATION if self.is_ready => {}
            SETTING if self.is_ready => self.settings += size,
            _ => self.answer += size,
        }
        if self.settings > LOGIN_MAX {
            return Err(Excess::of("of settings", LOGIN_MAX));
        }
        if !self.is_ready && self.answer > LOGIN_MAX {
            return Err(Excess::of("before it is ready for requests", LOGIN_MAX));
        }
        if self.answer > ANSWER_MAX {
            return Err(Excess::of("in one answer", ANSWER_MAX));
        }
        Ok(())
    }
}

impl Excess {
    fn of(what: &str, limit: u64) -> Self {
        let limit = limit >> 10;
        Self(format!(
            "the server sends more than {limit} KiB {what}; is it a PostgreSQL server, and does nothing change its answers on the way?"
        ))
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Excess {}

impl Heard {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S> Bounded<S> {
    pub(crate) fn new(stream: S, heard: Heard) -> Self {
        Self {
            stream,
            frames: Frames::default(),
            heard,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let bytes = buffer.filled().get(before..).unwrap_or_default();
        self.heard.0.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(self.frames.accept(bytes).map_err(io::Error::other))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: TlsStream + Unpin> TlsStream for Bounded<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream.channel_binding()
    }
}

impl<S, C> TlsConnect<S> for BoundedTls<C>
where
    C: TlsConnect<S, Future: Send + 'static>,
{
    type Stream = Bounded<C::Stream>;
    type Error = C::Error;
    type Future = BoxFuture<'static, Result<Self::Stream, Self::Error>>;

    fn connect(self, stream: S) -> Self::Future {
        let Self(tls, heard) = self;
        let handshake = tls.connect(stream);
        Box::pin(async move { Ok(Bounded::new(handshake.await?, heard)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(tag: u8, body: usize) -> Vec<u8> {
        let length = u32::try_from(body + 4).unwrap().to_be_bytes();
        [&[tag][..], &length, &vec![0; body]].concat()
    }

    /// What becomes of `count` such messages after the login, or before it.
    fn after(is_ready: bool, tag: u8, body: usize, count: usize) -> Result<(), Excess> {
        let mut frames = Frames::default();
        if is_ready {
            frames.accept(&message(b'Z', 1))?;
        }
        let bytes = message(tag, body);
        (0..count).try_for_each(|_| frames.accept(&bytes))
    }

    #[test]
    fn usual_messages_are_accepted_in_any_pieces() {
        let login = [message(b'R', 8), message(b'S', 30), message(b'Z', 1)].concat();
        let answer = [message(b'D', 1 << 20), message(b'Z', 1)].concat();
        for piece in [1, 3, 4096, 1 << 22] {
            let mut frames = Frames::default();
            for _ in 0..3 {
                for bytes in [&login, &answer].map(|bytes| bytes.chunks(piece)) {
                    bytes.for_each(|bytes| frames.accept(bytes).unwrap());
                }
            }
            assert!(frames.is_ready && frames.answer == 0, "{frames:?}");
        }
    }

    #[test]
    fn what_nothing_keeps_is_unlimited() {
        for tag in *b"NA" {
            after(true, tag, 1000, 100_000).unwrap();
        }
    }

    #[test]
    fn excess_is_refused_at_its_header() {
        for (is_ready, tag, body, count, what) in [
            (true, b'D', 9 << 20, 1, "in one message"),
            (true, b'D', 1 << 20, 65, "in one answer"),
            (true, b'S', 100, 4000, "of settings"),
            (false, b'S', 100, 4000, "before it is ready"),
            (false, b'N', 100, 4000, "before it is ready"),
        ] {
            let excess = after(is_ready, tag, body, count).unwrap_err();
            assert!(excess.to_string().contains(what), "{excess}");
        }
        let mut frames = Frames::default();
        frames.accept(&message(b'Z', 1)).unwrap();
        assert!(frames.accept(&[b'D', 0xff, 0xff, 0xff, 0xff]).is_err());
    }
}
