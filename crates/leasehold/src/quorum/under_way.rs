//! What members were asked at once, and what becomes of those whose answer nobody needs any more.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tracing::{Instrument as _, Span};

use crate::BoxFuture;
use crate::background;
use crate::error::{Error, ErrorKind};

/// Requests to several members, carried out where their answers are awaited. Whatever is still under way
/// when this is dropped goes on in the background: members finish behind the caller's back.
pub(crate) struct UnderWay<T: Send + 'static>(Vec<BoxFuture<'static, T>>);

impl<T: Send + 'static> UnderWay<T> {
    /// Room for so many.
    pub(crate) fn with_capacity(members: usize) -> Self {
        Self(Vec::with_capacity(members))
    }

    /// From now on `request` is under way, too.
    pub(crate) fn push(&mut self, request: impl Future<Output = T> + Send + 'static) {
        self.0.push(Box::pin(request));
    }

    /// From now on `request` is under way, and whatever it tells is within `span`.
    pub(crate) fn push_within(
        &mut self,
        span: &Span,
        request: impl Future<Output = T> + Send + 'static,
    ) {
        // Where nobody listens it has no room for a span.
        if span.is_disabled() {
            self.push(request);
        } else {
            self.push(request.instrument(span.clone()));
        }
    }

    /// The next answer; `None` once all have come in.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: no answer is lost.
    pub(crate) async fn next(&mut self) -> Option<T> {
        // They are few, and answers often come together: all are looked at, whoever woke us.
        poll_fn(|cx| {
            for place in 0..self.0.len() {
                if let Poll::Ready(answer) = self.0[place].as_mut().poll(cx) {
                    drop(self.0.remove(place));
                    return Poll::Ready(Some(answer));
                }
            }
            if self.0.is_empty() {
                Poll::Ready(None)
            } else {
                Poll::Pending
            }
        })
        .await
    }
}

impl<T: Send + 'static> Drop for UnderWay<T> {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            let rest = join_all(std::mem::take(&mut self.0));
            background::see_through(async { drop(rest.await) });
        }
    }
}

impl<T: Send + 'static> fmt::Debug for UnderWay<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnderWay({})", self.0.len())
    }
}

/// What `request` comes to, or an error where the member's code panics: that is one member that failed,
/// and nobody else's concern.
///
/// No `async fn`: that would have room for `request` twice, as what it is called with and as what it
/// awaits.
pub(crate) fn unbroken<T>(
    request: impl Future<Output = Result<T, Error>>,
) -> impl Future<Output = Result<T, Error>> {
    AssertUnwindSafe(request).catch_unwind().map(|outcome| {
        outcome.unwrap_or_else(|_| {
            let broken = Error::new(ErrorKind::Closed, "the request broke off");
            Err(broken.with_unknown_effect())
        })
    })
}
