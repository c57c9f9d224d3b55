use std::future::Future;
use std::pin::{Pin, pin};

use futures_util::FutureExt as _;
use futures_util::future::FusedFuture;

use super::announcer::RETRY;
use super::leader_election::Election;
use super::leadership::Leadership;
use crate::types::Error;

impl Election {
    /// Runs `body` whenever this candidate leads, until `body` ends by itself or `stop` completes: the whole loop of a
    /// candidate in one call.
    ///
    /// It [campaigns](Self::campaign), and runs `body` as [`Leadership::run`] does. After a loss, `body` is dropped before
    /// another candidate can lead, and the call campaigns again. So `body` may start more than once, each time with the fence
    /// of a new term. It is cloned for each, so it captures references, or values that can be cloned.
    ///
    /// When `stop` completes, the call leaves the queue, or drops `body` and resigns: the next candidate leads at once. It returns `None` then, and the output of `body` if that ended by itself. `stop` is a signal, or
    /// `token.cancelled()`. A body that may only end between two steps watches the token itself.
    ///
    /// A campaign waits as long as it takes, so the [`wait`](Self::wait) of the election has no effect. An outage of a store that
    /// has answered before is waited for, and only logged.
    ///
    /// # Errors
    ///
    /// The errors of [`campaign`](Self::campaign) that another campaign would return too: invalid input, a refusal, a record
    /// that is not an announcement, and a store that has never answered this client. A lost leadership is not an error, and a
    /// resignation that fails is logged.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `body` first, and then resigns in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore};
    /// use tokio_util::sync::CancellationToken;
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let stop = CancellationToken::new();
    /// let election = locks.election("scheduler").value("10.0.0.7:8080");
    /// let led = election.lead(stop.cancelled(), async |leadership| {
    ///     println!("schedule with fence {}", leadership.fence());
    ///     # stop.cancel();
    ///     std::future::pending::<()>().await; // a loop without an end
    /// });
    /// assert_eq!(led.await?, None); // stopped, and resigned
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    #[doc(alias = "autoRequeue")]
    #[doc(alias = "RunOrDie")]
    pub fn lead<T, S, B>(
        &self,
        stop: S,
        body: B,
    ) -> impl Future<Output = Result<Option<T>, Error>> + use<T, S, B>
    where
        S: Future<Output = ()>,
        B: AsyncFnOnce(&Leadership) -> T + Clone,
    {
        let election = self.clone().without_wait();
        async move {
            let mut stop = pin!(stop.fuse());
            while !stop.is_terminated() {
                let campaigned = tokio::select! {
                    biased;
                    () = &mut stop => break,
                    campaigned = election.campaign() => campaigned,
                };
                let leadership = match campaigned {
                    Ok(leadership) => leadership,
                    Err(error) => {
                        election.rest_after(error).await?;
                        continue;
                    }
                };
                let working = until_stopped(stop.as_mut(), body.clone()(&leadership));
                let output = leadership.keep_during(working).await;
                match leadership.end(output).await {
                    Err(error) if error.is_lost() => {
                        tracing::warn!(%error, "no longer leads, and campaigns again");
                    }
                    led => return led,
                }
            }
            Ok(None)
        }
    }

    /// Pauses before the next campaign, if that may succeed.
    async fn rest_after(&self, error: Error) -> Result<(), Error> {
        let client = self.client();
        // A store that has never answered may have the wrong address.
        if !error.is_retryable() || !client.core().context.was_answered() {
            return Err(error);
        }
        tracing::warn!(%error, "cannot lead, and campaigns again");
        client.pause(RETRY).await
    }
}

/// Returns the output of `body`; `None` if `stop` completes first.
async fn until_stopped<F: Future>(
    stop: Pin<&mut impl Future<Output = ()>>,
    body: F,
) -> Option<F::Output> {
    tokio::select! {
        biased;
        () = stop => None,
        output = body => Some(output),
    }
}
