use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use tokio::select;
use tokio::sync::Mutex;

use super::announcement::Announcement;
use crate::client::Client;
use crate::env::clock::WallTime;
use crate::guard::Guard;
use crate::store::RECORD_MEMORY;
use crate::types::{Effect, Error, ErrorKind, Mode, exact_span};

/// Writes a leader's announcement next to its lock.
#[derive(Debug)]
pub(super) struct Announcer {
    client: Client,
    /// How long to retry the announcement of a new leader.
    retry_for: Duration,
    since: WallTime,
    /// Locked during a write, so that values reach the store in the order in which they were published.
    value: Mutex<String>,
}

impl Announcer {
    /// Makes the announcer of a leader whose term begins now, and which publishes `value`.
    pub(super) fn new(client: Client, retry_for: Duration, value: String) -> Self {
        Self {
            since: client.env().clock.wall(),
            client,
            retry_for,
            value: Mutex::new(value),
        }
    }

    /// See `Election::announce`.
    pub(super) async fn announce(&self, guard: &Guard) -> Result<(), Error> {
        check_mode(guard)?;
        // The timer starts before the first write: a write without an answer may have taken effect.
        let mut limit = pin!(self.client.pause(self.retry_for));
        let mut last = None;
        loop {
            select! {
                biased;
                reason = guard.lost() => return Err(guard.lost_error(reason)),
                over = &mut limit => {
                    over?;
                    return Err(last.unwrap_or_else(|| self.not_in_time(guard)));
                }
                outcome = self.try_to_announce(guard) => match outcome {
                    Err(error) if error.is_retryable() => {
                        tracing::debug!(key = %guard.key(), %error, "not announced yet");
                        last = Some(error);
                    }
                    outcome => return outcome,
                },
            }
            self.client.pause(RETRY).await?;
        }
    }

    fn not_in_time(&self, guard: &Guard) -> Error {
        let text = format!(
            "the leader was not announced within {}",
            exact_span(self.retry_for)
        );
        Error::new(ErrorKind::Unreachable, text)
            .with_store(self.client.to_string())
            .with_key(guard.key())
            .with_unknown_effect()
    }

    async fn try_to_announce(&self, guard: &Guard) -> Result<(), Error> {
        self.leave_others_records(guard).await?;
        write(guard, self.since, &self.value.lock().await).await
    }

    /// Announces `value` from now on.
    pub(super) async fn publish(&self, guard: &Guard, value: String) -> Result<(), Error> {
        let mut published = self.value.lock().await;
        *published = value;
        write(guard, self.since, &published).await
    }

    /// Leaves a record alone that no leader wrote: the name is in use for something else. It opens the
    /// record and does not only read it, so that a delayed earlier holder of the lock can write none after
    /// this check.
    async fn leave_others_records(&self, guard: &Guard) -> Result<(), Error> {
        let opened = guard.record().open().await;
        match opened.map_err(|error| lost_if_fenced(error, guard))? {
            Some(written) => Announcement::read(&written.bytes)
                .map(drop)
                .map_err(|error| error.with_key(guard.key())),
            None => Ok(()),
        }
    }

    /// Writes the announcement again and again, for servers that lost it.
    pub(super) async fn repeat(&self, guard: &Guard) -> Infallible {
        loop {
            if self.client.pause(REPEAT).await.is_err() {
                // The client is unusable, and its guards are lost.
                return std::future::pending().await;
            }
            let value = self.value.lock().await;
            if let Err(error) = write(guard, self.since, &value).await {
                tracing::debug!(key = %guard.key(), %error, "not announced again");
            }
        }
    }

    /// Withdraws the announcement, if that takes at most `WITHDRAWAL_MAX`. Without the lock it would not count
    /// anyway; this only tidies up.
    pub(super) async fn withdraw(&self, guard: &Guard) {
        if !guard.is_valid() {
            return;
        }
        let record = guard.record();
        let outcome = select! {
            biased;
            outcome = record.write([], AFTER_THE_END) => outcome,
            outcome = self.client.pause(WITHDRAWAL_MAX) => outcome,
        };
        if let Err(error) = outcome {
            tracing::debug!(key = %guard.key(), %error, "the announcement stays");
        }
    }
}

async fn write(guard: &Guard, since: WallTime, value: &str) -> Result<(), Error> {
    let announcement = Announcement {
        owner: guard.owner(),
        since,
        value: value.to_owned(),
    };
    let text = announcement.to_string().into_bytes();
    let written = guard.record().write(text, RETENTION).await;
    written.map_err(|error| lost_if_fenced(error, guard))
}

/// A record with a greater fence was written by a client that was granted the lock after this guard was
/// lost.
fn lost_if_fenced(error: Error, guard: &Guard) -> Error {
    if error.kind() != ErrorKind::Fenced {
        return error;
    }
    let lost = Error::new(ErrorKind::Lost, error.reason()).with_key(guard.key());
    match error.effect() {
        Effect::None => lost,
        Effect::Unknown => lost.with_unknown_effect(),
    }
}

/// A leader must hold the lock exclusively: in another mode other clients hold it too.
fn check_mode(guard: &Guard) -> Result<(), Error> {
    if guard.mode() == Mode::Exclusive {
        return Ok(());
    }
    let text = format!(
        "a leader holds its lock alone, and not in mode {}",
        guard.mode()
    );
    Err(Error::new(ErrorKind::InvalidInput, text).with_key(guard.key()))
}

/// How long the store keeps an announcement that is not written again. If the leader had to repeat it to
/// keep it, it would be a second lease.
const RETENTION: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// How long a withdrawal is kept: longer than the lease. As long as the announcement can still count on a
/// member that missed the withdrawal, the other members outvote it. The store remembers the fence for that
/// long in any case.
const AFTER_THE_END: Duration = RECORD_MEMORY;
/// How long the withdrawal may delay the release.
const WITHDRAWAL_MAX: Duration = Duration::from_secs(1);
/// The pause before a failed announcement is retried, or the campaign of a leader that was lost before it.
pub(super) const RETRY: Duration = Duration::from_millis(200);
/// How long a server that lost an announcement stays without it.
const REPEAT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    #[test]
    fn fenced_write_is_lost_with_the_same_effect() {
        let locks = Client::new(MemoryStore::new());
        let guard = pollster::block_on(locks.lock("x").acquire()).unwrap();
        let fenced = || Error::new(ErrorKind::Fenced, "too late");
        let lost = lost_if_fenced(fenced(), &guard);
        assert_eq!(
            (lost.kind(), lost.effect()),
            (ErrorKind::Lost, Effect::None)
        );
        let lost = lost_if_fenced(fenced().with_unknown_effect(), &guard);
        assert_eq!(
            (lost.kind(), lost.effect()),
            (ErrorKind::Lost, Effect::Unknown)
        );
        let other = Error::new(ErrorKind::Corrupt, "damaged");
        assert_eq!(lost_if_fenced(other, &guard).kind(), ErrorKind::Corrupt);
    }
}
