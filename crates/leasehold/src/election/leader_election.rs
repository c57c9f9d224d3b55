use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::announcement::{Announcement, check_value};
use super::announcer::{Announcer, RETRY};
use super::change_tracker::Seen;
use super::leader_change::Leader;
use super::leadership::Leadership;
use crate::acquire::{LockOptions, lock_options};
use crate::client::Client;
use crate::guard::Guard;
use crate::lock::Lock;
use crate::types::{Error, ErrorKind, Holder, Key};

/// An election of a leader among all clients that campaign under a name. Winning it returns a
/// [`Leadership`], which lasts until the leader resigns or loses it; [`observe`](Self::observe) reports the
/// leader and every change.
///
/// ```
/// # pollster::block_on(async {
/// use leasehold::{Client, memory::MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let election = locks.election("scheduler").value("10.0.0.7:8080");
/// let leadership = election.campaign().await?;
/// let leader = election.leader().await?.expect("it has announced itself");
/// assert_eq!((leader.fence, &*leader.value), (leadership.fence(), "10.0.0.7:8080"));
///
/// leadership.run(async |_| { /* cancelled if the leadership is lost */ }).await?; // and resigns
/// assert!(election.leader().await?.is_none());
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
///
/// The leader holds the lock of that name exclusively and has announced itself: it writes a record next to
/// the lock that says who it is and holds a value of its own. The store orders these writes by fence, so a
/// former leader cannot overwrite what a later one wrote. Use the name for the election only: as long as
/// another client holds the lock in any other way, no candidate can lead.
///
/// Two clients may *believe* that they lead for as long as one of them is paused or its messages are
/// delayed. Show the [fence](Leadership::fence) to every resource that the leader acts on.
/// [`manual::leadership`](crate::manual::leadership) says what is promised and what is not.
#[doc(alias = "leader")]
#[doc(alias = "leader election")]
#[doc(alias = "primary")]
#[derive(Clone, Debug)]
#[must_use = "an election does nothing until somebody campaigns or observes"]
pub struct Election {
    client: Client,
    pub(super) key: Result<Key, Error>,
    options: LockOptions,
    value: String,
    pub(super) poll_interval: Duration,
}

impl Client {
    /// Returns the election of a leader among all candidates for `name`. Every call on it reports an
    /// invalid name.
    pub fn election(&self, name: impl AsRef<str>) -> Election {
        Election::new(self.clone(), name.as_ref())
    }
}

impl Election {
    /// The maximum size of a value that a leader publishes, in bytes.
    pub const VALUE_MAX: usize = Announcement::VALUE_MAX;

    /// The default pause between two reads by an observer.
    pub const POLL_INTERVAL: Duration = Duration::from_secs(1);

    /// The shortest pause between two reads by an observer.
    pub const POLL_INTERVAL_MIN: Duration = Duration::from_millis(10);

    pub(crate) fn new(client: Client, name: &str) -> Self {
        Self {
            key: Key::new(name),
            options: client.defaults(),
            client,
            value: String::new(),
            poll_interval: Self::POLL_INTERVAL,
        }
    }

    lock_options! { key, ttl, lock_delay, wait, max_hold, barging }

    /// Sets the value that the leader publishes from its first moment on, for example the address where it
    /// can be reached. At most [`VALUE_MAX`](Self::VALUE_MAX) bytes. Every client with access to the store
    /// can read it. Default: empty.
    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.value = value.into();
        self
    }

    /// Sets the pause between two reads by an observer, at least [`POLL_INTERVAL_MIN`](Self::POLL_INTERVAL_MIN).
    /// The observer varies it by a tenth, so that observers spread out. It may see a change that much
    /// later. Default 1 s.
    pub fn poll_interval(mut self, pause: Duration) -> Self {
        self.poll_interval = pause;
        self
    }

    /// Waits until this candidate leads, as [`Lock::acquire`] waits for its lock, and announces it.
    /// Observers can see the leader when this returns.
    ///
    /// # Errors
    ///
    /// The errors of [`Lock::acquire`], where invalid input includes a value that is too long, and those of
    /// [`announce`](Self::announce). The call then elects no leader.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: nothing stays queued, and a leadership that was won is released.
    pub fn campaign(&self) -> impl Future<Output = Result<Leadership, Error>> + Send + use<> {
        let election = self.clone();
        async move {
            let key = election.key.clone()?;
            election.check_value()?;
            // Checked before the wait: without records no candidate can ever lead.
            let records = election.client.core().context.records();
            records.map_err(|error| error.with_key(&key))?;
            let clock = Arc::clone(&election.client.env().clock);
            let end = election.options.wait.map(|wait| clock.now() + wait);
            loop {
                let (core, key) = (Arc::clone(election.client.core()), election.key.clone());
                let wait = end.map(|end| end.since(clock.now()));
                let options = LockOptions {
                    wait,
                    ..election.options
                };
                let guard = Lock::new(core, key, options).acquire().await?;
                match election.announce(guard).await {
                    // The guard was lost before any observer could see the announcement: this candidate
                    // never led.
                    Err(error) if error.is_lost() => {
                        tracing::debug!(%error, "lost before it was announced");
                        election.client.pause(RETRY).await?;
                    }
                    outcome => return outcome,
                }
            }
        }
    }

    /// Makes the holder of `guard` the leader, and announces it. [`campaign`](Self::campaign) does the same
    /// with the lock that it acquired; this method is for a lock of this name that was acquired in another
    /// way. While the store does not answer, it retries for at most one TTL.
    ///
    /// A server that lost its data has lost the announcement too. [`Leadership::run`] writes it again
    /// every minute. Without `run`, poll [`keep_announced`](Leadership::keep_announced): the store keeps an
    /// announcement for a year.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`] if the guard is not valid, or another client has led since.
    /// [`ErrorKind::Corrupt`] if the record next to the lock is not an announcement; it is left as it is.
    /// [`ErrorKind::InvalidInput`] for a guard of another name, a guard that is not exclusive, and a value
    /// that is too long. [`ErrorKind::Unsupported`] if the store keeps no records. Any other error after
    /// one TTL. The guard is dropped then.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: the leader may be announced or not, and the guard is dropped.
    pub async fn announce(&self, guard: Guard) -> Result<Leadership, Error> {
        let key = self.key.clone()?;
        self.check_value()?;
        if guard.key() != &key {
            let text = format!("the guard is of another lock, {:?}", guard.key().as_str());
            return Err(Error::new(ErrorKind::InvalidInput, text).with_key(&key));
        }
        let announcer = Announcer::new(self.client.clone(), self.options.ttl, self.value.clone());
        match announcer.announce(&guard).await {
            Ok(()) => Ok(Leadership::new(guard, announcer)),
            Err(error) => {
                if let Err(error) = guard.release().await {
                    tracing::warn!(%key, %error, "release failed");
                }
                Err(error)
            }
        }
    }

    /// Reads the current leader from the store once; `None` if no leader is known.
    ///
    /// # Errors
    ///
    /// An invalid name, a store that does not answer, or one that keeps no records; [`ErrorKind::Corrupt`]
    /// if the record next to the lock is not an announcement.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn leader(&self) -> Result<Option<Leader>, Error> {
        Ok(self.read().await?.map(|seen| seen.leader))
    }

    /// Reads the holder first: the record that it reads next was then written under the lease of that
    /// holder, or under a later one.
    pub(super) async fn read(&self) -> Result<Option<Seen>, Error> {
        let key = self.key.clone()?;
        let holders = self.client.holders(&key).await?;
        if holders.is_empty() {
            return Ok(None);
        }
        let reading = self.client.record(&key).read().await?;
        let Some(written) = reading.written else {
            return Ok(None);
        };
        let announcement = Announcement::read(&written.bytes);
        let Some(announcement) = announcement.map_err(|error| error.with_key(&key))? else {
            return Ok(None);
        };
        let leads = |holder: &Holder| holder.owner == Some(announcement.owner);
        let mut holder = holders.into_iter().find(leads);
        if holder.is_none() {
            // A new leader may have followed the old one between the two reads.
            let holders = self.client.holders(&key).await?;
            holder = holders.into_iter().find(leads);
        }
        Ok(holder.map(|holder| Seen {
            leader: Leader {
                owner: announcement.owner,
                client: holder.client,
                fence: written.version.fence,
                value: announcement.value,
                since: announcement.since,
            },
            version: written.version,
        }))
    }

    /// The same election, whose campaigns wait as long as it takes.
    pub(super) fn without_wait(mut self) -> Self {
        self.options.wait = None;
        self
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the pause before the next read.
    pub(super) fn rest(&self) -> Duration {
        let spread = self.poll_interval / 10;
        let (least, most) = (self.poll_interval - spread, self.poll_interval + spread);
        self.client.env().random_span(least, most)
    }

    fn check_value(&self) -> Result<(), Error> {
        let key = self.key.clone()?;
        check_value(&self.value).map_err(|error| error.with_key(&key))
    }
}
