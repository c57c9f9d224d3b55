use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt as _};

use super::leader_change::LeaderChange;
use super::leader_election::Election;
use super::news::{News, Verdict};

/// Tells who leads, whenever that changes: a stream, or [`next`](Self::next) by hand.
///
/// The first item is how it is now. Only changes follow, in the order of fences: a leader older than one
/// that was told is never told, nor a value older than one that was told of the same leader. What
/// lasts shorter than the pause between two looks may be missed. A failure is an item
/// ([`LeaderChange::Unknown`]) and not the end; what is seen after it is told even if it is the same.
///
/// Nobody tells observers anything: each asks the store again and again
/// ([`Election::look_every`]), and only while it is polled. A look is one question for the holder and, while there is
/// one, one for its record, and one more for the holder where that record is another's; on a quorum each
/// goes to every member.
///
/// # Cancel safety
///
/// May be dropped at any time, and so may each [`next`](Self::next): the following one goes on.
#[must_use = "a watch looks only while it is polled"]
pub struct LeaderWatch {
    changes: Pin<Box<dyn Stream<Item = LeaderChange> + Send>>,
}

/// Between two looks.
struct Watching {
    election: Election,
    news: News,
    /// How long to rest before the next look.
    rest: Duration,
}

impl LeaderWatch {
    pub(super) fn new(election: Election) -> Self {
        let watching = Watching {
            election,
            news: News::default(),
            rest: Duration::ZERO,
        };
        Self {
            changes: Box::pin(stream::unfold(watching, Watching::next)),
        }
    }

    /// The next change; `None` only where the client cannot be used any more, as in a forked child.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: no change is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, LeaderChange, MemoryStore};
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

impl Watching {
    /// Looks until there is something to tell.
    async fn next(mut self) -> Option<(LeaderChange, Self)> {
        loop {
            let client = self.election.client();
            client.pause(self.rest).await.ok()?;
            let look = self.election.look().await;
            self.rest = self.election.rest();
            match self.news.learn(look) {
                Verdict::Tell(change) => return Some((change, self)),
                Verdict::Silence => {}
                Verdict::LookAgain => self.rest = self.rest.min(SECOND_LOOK),
            }
        }
    }
}

/// How soon a look is repeated that did not find the leader.
const SECOND_LOOK: Duration = Duration::from_millis(300);

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
