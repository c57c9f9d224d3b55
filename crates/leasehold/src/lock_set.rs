use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use futures_util::future::join_all;

use crate::attempt::LostReason;
use crate::claim::Mode;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::guard::Guard;
use crate::guard_set::GuardSet;
use crate::key::Key;
use crate::lock::Lock;

/// Several locks to be taken as one: all of them or none. Taking them makes a [`GuardSet`].
///
/// Give the names in any order, and the same one more than once if you like. Sets that overlap never
/// wait for each other in a circle: whoever waits for a lock of a set holds only those whose names
/// sort before it. That holds for sets. A program that holds a guard and asks for another one must
/// see to the order itself.
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use std::time::Duration;
/// use leasehold::{Client, MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let transfer = locks.lock_all(["account/7", "account/3"]).wait(Duration::from_secs(5));
/// let guards = transfer.acquire().await?;
/// println!("fence of the first: {:?}", guards.fence("account/7"));
/// guards.release().await;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use = "locks do nothing until they are acquired"]
pub struct LockSet {
    client: Client,
    /// Ordered by their names, each once.
    locks: Result<Vec<Lock>, Error>,
    wait: Option<Duration>,
}

impl LockSet {
    pub(crate) fn new(client: Client, names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let keys: Result<BTreeSet<Key>, Error> = names.into_iter().map(Key::new).collect();
        let locks = keys.and_then(|keys| {
            if keys.is_empty() {
                let text = "a set of no locks: give it at least one name";
                return Err(Error::new(ErrorKind::InvalidInput, text));
            }
            Ok(keys.iter().map(|key| client.lock(key)).collect())
        });
        Self {
            client,
            locks,
            wait: None,
        }
    }

    /// As [`Lock::ttl`], for each lock.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.each(|lock| lock.ttl(ttl))
    }

    /// How long [`acquire`](Self::acquire) waits at most, for all locks together. Default: no limit.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// As [`Lock::max_hold`], for each lock: counted from its own grant, also while others are still
    /// waited for.
    pub fn max_hold(self, max_hold: Duration) -> Self {
        self.each(|lock| lock.max_hold(max_hold))
    }

    /// As [`Lock::lock_delay`], for each lock. Of a set that is lost, the locks that are not are freed at
    /// once when it is released or dropped.
    pub fn lock_delay(self, span: Duration) -> Self {
        self.each(|lock| lock.lock_delay(span))
    }

    /// As [`Lock::mode`], for each lock.
    pub fn mode(self, mode: Mode) -> Self {
        self.each(|lock| lock.mode(mode))
    }

    /// As [`Lock::barging`], for each lock.
    pub fn barging(self, barging: bool) -> Self {
        self.each(|lock| lock.barging(barging))
    }

    fn each(mut self, change: impl Fn(Lock) -> Lock) -> Self {
        self.locks = self
            .locks
            .map(|locks| locks.into_iter().map(change).collect());
        self
    }

    /// Takes the locks if all are free; `None` if somebody else holds one. Asks for all of them at
    /// the same time, each once, and never waits. Of two who ask for overlapping sets in the same
    /// moment, both may be told `None`.
    ///
    /// # Errors
    ///
    /// Invalid input, an empty set among it, or a store that could not be asked. Nothing is held
    /// then. Busy is no error.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: nothing stays held.
    pub fn try_acquire(
        &self,
    ) -> impl Future<Output = Result<Option<GuardSet>, Error>> + Send + use<> {
        let set = self.clone();
        async move {
            let answers = ask_for_all(&set.locks?).await;
            let answers: Vec<Option<Guard>> = answers.into_iter().collect::<Result<_, _>>()?;
            let guards: Option<Vec<Guard>> = answers.into_iter().collect();
            Ok(guards.map(|guards| GuardSet::of(guards).handed_out()))
        }
    }

    /// Takes all locks, waiting for their holders.
    ///
    /// If all are free that is one round trip. Else those before the first one that is not are kept,
    /// the others given back, and the rest is waited for in the order of the names, each as
    /// [`Lock::acquire`] does. If a lock is lost meanwhile, all are given back, and the whole begins
    /// anew within the same wait.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] with the lock that somebody else still held when the wait ended;
    /// [`ErrorKind::Lost`] if the longest time to hold one was over while others were waited for;
    /// else as [`Lock::acquire`]. Nothing is held then.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: nothing stays held or queued.
    pub fn acquire(&self) -> impl Future<Output = Result<GuardSet, Error>> + Send + use<> {
        let set = self.clone();
        async move {
            let locks = set.locks?;
            let clock = &set.client.ambient().clock;
            let end = set.wait.map(|wait| clock.now() + wait);
            let limited = |lock: &Lock| match end {
                Some(end) => lock.clone().wait(end.since(clock.now())),
                None => lock.clone(),
            };
            loop {
                let mut held = match &*locks {
                    [_] => GuardSet::of([]),
                    several => free_ones(several).await?,
                };
                match wait_for_the_rest(&mut held, &locks, limited).await? {
                    None => return Ok(held.handed_out()),
                    Some((key, LostReason::MaxHold)) => {
                        let text = "held for the longest time while others were waited for";
                        return Err(Error::new(ErrorKind::Lost, text).with_key(&key));
                    }
                    Some((key, reason)) => {
                        tracing::debug!(%key, %reason, "lost while others were waited for");
                    }
                }
            }
        }
    }
}

async fn ask_for_all(locks: &[Lock]) -> Vec<Result<Option<Guard>, Error>> {
    join_all(locks.iter().map(Lock::try_acquire)).await
}

/// Asks for all at the same time, and keeps those before the first one that is not granted.
async fn free_ones(locks: &[Lock]) -> Result<GuardSet, Error> {
    let mut answers = ask_for_all(locks).await;
    let hopeless =
        |answer: &Result<_, Error>| matches!(answer, Err(error) if !error.is_retryable());
    if let Some(first) = answers.iter().position(hopeless) {
        answers.swap_remove(first)?;
    }
    let granted = answers.into_iter().map_while(|answer| answer.ok()?);
    Ok(GuardSet::of(granted))
}

/// Waits for the locks that are not held yet, one after the other; says if one was lost meanwhile.
async fn wait_for_the_rest(
    held: &mut GuardSet,
    locks: &[Lock],
    limited: impl Fn(&Lock) -> Lock,
) -> Result<Option<(Key, LostReason)>, Error> {
    for lock in &locks[held.keys().count()..] {
        tokio::select! {
            biased;
            lost = held.lost() => return Ok(Some(lost)),
            granted = limited(lock).acquire() => held.add(granted?),
        }
    }
    Ok(held.first_lost())
}
