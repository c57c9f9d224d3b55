use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::announcement::Announcement;
use super::announcer::{Announcer, RETRY};
use super::leader_change::Leader;
use super::leader_watch::LeaderWatch;
use super::leadership::Leadership;
use super::news::Seen;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::guard::Guard;
use crate::holder::Holder;
use crate::key::Key;
use crate::lock::Lock;

/// The election of a leader among all who campaign under a name. Winning it makes a [`Leadership`], which
/// lasts until it is resigned or lost; [`observe`](Self::observe) tells anybody who leads.
///
/// The leader is the one that holds the lock of the name exclusively, and has announced itself: beside the
/// lock it writes who it is and a value of its own, by fence, so that a leader whose time is over cannot
/// overwrite what a later one wrote. The name is for this alone: whoever else takes the lock keeps
/// everybody from leading.
///
/// Two may *think* that they lead, for as long as one of them stands still or its messages travel. What
/// a leader does to others shows its [fence](Leadership::fence).
/// [`manual::leadership`](crate::manual::leadership) says what is promised and what is not.
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use leasehold::{Client, MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let election = locks.election("scheduler").value("10.0.0.7:8080");
/// let leadership = election.campaign().await?;
/// let leader = election.leader().await?.expect("it has announced itself");
/// assert_eq!((leader.fence, &*leader.value), (leadership.fence(), "10.0.0.7:8080"));
///
/// leadership.lead(async { /* cancelled if the leadership is lost */ }).await?;
/// leadership.resign().await?;
/// assert!(election.leader().await?.is_none());
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use = "an election does nothing until somebody campaigns or observes"]
pub struct Election {
    client: Client,
    key: Result<Key, Error>,
    lock: Lock,
    ttl: Duration,
    wait: Option<Duration>,
    value: String,
    look_every: Duration,
}

impl Election {
    /// The longest value a leader can publish, in bytes.
    pub const VALUE_MAX: usize = 4096;

    /// The pause between two looks of an observer that does not say otherwise.
    pub const LOOK_EVERY: Duration = Duration::from_secs(1);

    /// The shortest such pause.
    pub const LOOK_EVERY_MIN: Duration = Duration::from_millis(10);

    pub(crate) fn new(client: Client, name: &str) -> Self {
        Self {
            key: Key::new(name),
            lock: client.lock(name),
            client,
            ttl: Lock::DEFAULT_TTL,
            wait: None,
            value: String::new(),
            look_every: Self::LOOK_EVERY,
        }
    }

    /// As [`Lock::ttl`]: for how long nobody leads after a leader died, at most. Default 30 s.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.lock = self.lock.ttl(ttl);
        self.ttl = ttl;
        self
    }

    /// How long [`campaign`](Self::campaign) waits at most. Default: no limit.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// As [`Lock::max_hold`]: how long one may lead in all, a term of office. Default: no limit.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.lock = self.lock.max_hold(max_hold);
        self
    }

    /// As [`Lock::lock_delay`]: for how much longer nobody leads after an unclean end. Default: no longer.
    pub fn lock_delay(mut self, span: Duration) -> Self {
        self.lock = self.lock.lock_delay(span);
        self
    }

    /// What the leader publishes from its first moment on, for observers: where it can be reached, say. At
    /// most [`VALUE_MAX`](Self::VALUE_MAX) bytes. Everybody who can ask the store can read it. Default: nothing.
    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.value = value.into();
        self
    }

    /// The pause between two looks of an observer, give or take a tenth, so that observers spread out;
    /// at least [`LOOK_EVERY_MIN`](Self::LOOK_EVERY_MIN). A change is seen so much later. Default 1 s.
    pub fn look_every(mut self, pause: Duration) -> Self {
        self.look_every = pause;
        self
    }

    /// Waits until it is this one's turn to lead, as [`Lock::acquire`] waits for its lock, and announces it.
    /// When this returns, observers can see it.
    ///
    /// # Errors
    ///
    /// Those of [`Lock::acquire`], a value that is too long among the invalid input, and those of
    /// [`announce`](Self::announce): nobody leads then because of this call.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: nothing stays queued, and a leadership that was won is given back.
    pub fn campaign(&self) -> impl Future<Output = Result<Leadership, Error>> + Send + use<> {
        let election = self.clone();
        async move {
            election.check_value()?;
            let clock = Arc::clone(&election.client.ambient().clock);
            let end = election.wait.map(|wait| clock.now() + wait);
            loop {
                let lock = match end {
                    Some(end) => election.lock.clone().wait(end.since(clock.now())),
                    None => election.lock.clone(),
                };
                let guard = lock.acquire().await?;
                match election.announce(guard).await {
                    // Before anybody heard of it: it never led.
                    Err(error) if error.is_lost() => {
                        tracing::debug!(%error, "lost before it was announced");
                        election.client.pause(RETRY).await?;
                    }
                    outcome => return outcome,
                }
            }
        }
    }

    /// Makes whoever holds `guard` the leader, and announces it: what [`campaign`](Self::campaign) does with the
    /// lock that it took, for a lock of this name that was taken by other means. Repeated while the store does
    /// not answer, for one TTL at most.
    ///
    /// A server that forgot what it held has forgotten the announcement too. [`Leadership::lead`] writes it
    /// again every minute; whoever does not use that should [`publish`](Leadership::publish) now and then, and
    /// at least once a year, for which the store keeps it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`] if the guard is not valid, or somebody else has led since.
    /// [`ErrorKind::Corrupt`] where something else is written beside the lock, which is left as it is;
    /// [`ErrorKind::InvalidInput`] for a guard of another name, or that is not exclusive, and for a value that is
    /// too long; [`ErrorKind::Unsupported`] where the store keeps no records. All else after a TTL. The guard
    /// is dropped then.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: it may be announced or not, and the guard is dropped.
    pub async fn announce(&self, guard: Guard) -> Result<Leadership, Error> {
        let key = self.key.clone()?;
        self.check_value()?;
        if guard.key() != &key {
            let text = format!("the guard is of another lock, {:?}", guard.key().as_str());
            return Err(Error::new(ErrorKind::InvalidInput, text).with_key(&key));
        }
        let announcer = Announcer::new(self.client.clone(), self.ttl, self.value.clone());
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

    /// Who leads now, by one look; `None` if nobody is known to.
    ///
    /// # Errors
    ///
    /// An invalid name, a store that does not answer, or that keeps no records; [`ErrorKind::Corrupt`] where
    /// something else is written beside the lock.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn leader(&self) -> Result<Option<Leader>, Error> {
        Ok(self.look().await?.map(|seen| seen.leader))
    }

    /// Who leads, and every change of that: see [`LeaderWatch`]. Nothing is asked before it is polled.
    ///
    /// # Errors
    ///
    /// An invalid name, or a pause between looks that is too short.
    pub fn observe(&self) -> Result<LeaderWatch, Error> {
        let key = self.key.clone()?;
        if self.look_every < Self::LOOK_EVERY_MIN {
            let text = format!(
                "a look every {:?} is too often: at most every {:?}",
                self.look_every,
                Self::LOOK_EVERY_MIN
            );
            return Err(Error::new(ErrorKind::InvalidInput, text).with_key(&key));
        }
        Ok(LeaderWatch::new(self.clone()))
    }

    /// The holder first: what its record says was written under the lease that is seen, or a later one.
    pub(super) async fn look(&self) -> Result<Option<Seen>, Error> {
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
            // One may have followed the other between the two questions.
            let holders = self.client.holders(&key).await?;
            holder = holders.into_iter().find(leads);
        }
        Ok(holder.map(|holder| Seen {
            leader: Leader {
                owner: announcement.owner,
                client: holder.client,
                fence: written.stamp.fence,
                value: announcement.value,
                since: announcement.since,
            },
            stamp: written.stamp,
        }))
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The pause until the next look.
    pub(super) fn rest(&self) -> Duration {
        let spread = self.look_every / 10;
        let (least, most) = (self.look_every - spread, self.look_every + spread);
        self.client.ambient().random_span(least, most)
    }

    fn check_value(&self) -> Result<(), Error> {
        let key = self.key.clone()?;
        check_value(&self.value).map_err(|error| error.with_key(&key))
    }
}

pub(super) fn check_value(value: &str) -> Result<(), Error> {
    if value.len() <= Election::VALUE_MAX {
        return Ok(());
    }
    let text = format!(
        "the value has {} bytes; the maximum is {}",
        value.len(),
        Election::VALUE_MAX
    );
    Err(Error::new(ErrorKind::InvalidInput, text))
}
