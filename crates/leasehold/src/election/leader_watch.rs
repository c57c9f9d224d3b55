use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt as _};

use super::change_tracker::{ChangeTracker, NextStep};
use super::leader_change::LeaderChange;
use super::leader_election::Election;
use crate::types::{Error, ErrorKind, exact_span};

/// A stream of the current leader and its changes; [`next`](Self::next) reads it by hand.
///
/// The first item is the current state. After it come only changes, in the order of fences. A watch never
/// reports a leader older than one that it has reported, nor an older value of the same leader. It may miss
/// what lasts shorter than the pause between two reads. A failure is an item ([`LeaderChange::Unknown`])
/// and does not end the stream. The watch reports the next state after a failure even if nothing has
/// changed.
///
/// The store does not notify observers: each one reads it again and again ([`Election::poll_interval`]), and
/// only while the stream is polled. Each time it reads the holder and, if there is one, its record. If the
/// record names another holder, it reads the holder once more. On a quorum each read goes to every member.
///
/// # Cancel safety
///
/// May be dropped at any time, and so may each [`next`](Self::next): the following call continues.
#[must_use = "a watch reads only while it is polled"]
pub struct LeaderWatch {
    changes: Pin<Box<dyn Stream<Item = LeaderChange> + Send>>,
}

/// The state of a watch between two reads.
struct Watching {
    election: Election,
    tracker: ChangeTracker,
    /// How long to wait before the next read.
    rest: Duration,
}

impl LeaderWatch {
    pub(super) fn new(election: Election) -> Self {
        let watching = Watching {
            election,
            tracker: ChangeTracker::default(),
            rest: Duration::ZERO,
        };
        Self {
            changes: Box::pin(stream::unfold(watching, Watching::next)),
        }
    }

    /// Returns the next change; `None` only if the client is unusable, as in a forked child.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: no change is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, election::LeaderChange, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let mut watch = locks.election("scheduler").observe()?;
    /// match watch.next().await {
    ///     Some(LeaderChange::Leads(leader)) => println!("ask {}", leader.value),
    ///     Some(LeaderChange::Unknown(why)) => println!("not known: {why}"),
    ///     _ => println!("nobody leads"),
    /// }
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn next(&mut self) -> Option<LeaderChange> {
        self.changes.next().await
    }
}

impl Election {
    /// Returns a stream of the current leader and every change: see [`LeaderWatch`]. It sends nothing
    /// before it is polled.
    ///
    /// # Errors
    ///
    /// An invalid name, or a pause between reads that is too short.
    #[doc(alias = "watch")]
    #[doc(alias = "subscribe")]
    pub fn observe(&self) -> Result<LeaderWatch, Error> {
        let key = self.key.clone()?;
        if self.poll_interval < Self::POLL_INTERVAL_MIN {
            let text = format!(
                "a poll interval of {} is too short; the minimum is {}",
                exact_span(self.poll_interval),
                exact_span(Self::POLL_INTERVAL_MIN)
            );
            return Err(Error::new(ErrorKind::InvalidInput, text).with_key(&key));
        }
        Ok(LeaderWatch::new(self.clone()))
    }
}

impl Watching {
    /// Reads until there is a change to report.
    async fn next(mut self) -> Option<(LeaderChange, Self)> {
        loop {
            let client = self.election.client();
            client.pause(self.rest).await.ok()?;
            let seen = self.election.read().await;
            self.rest = self.election.rest();
            match self.tracker.learn(seen) {
                NextStep::Report(change) => return Some((change, self)),
                NextStep::Wait => {}
                NextStep::ReadAgain => self.rest = self.rest.min(SECOND_READ),
            }
        }
    }
}

/// How soon to read again after a read that did not find the leader.
const SECOND_READ: Duration = Duration::from_millis(300);

impl Stream for LeaderWatch {
    type Item = LeaderChange;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<LeaderChange>> {
        self.changes.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for LeaderWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderWatch").finish_non_exhaustive()
    }
}
