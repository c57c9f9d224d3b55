use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::guard_set::GuardSet;
use crate::acquire::{LockOptions, lock_options};
use crate::client::Client;
use crate::guard::Guard;
use crate::lock::Lock;
use crate::types::{Error, ErrorKind, Key, LostReason, Mode};

/// Several locks that are acquired together: all of them or none. Acquiring them returns a [`GuardSet`].
///
/// The names may come in any order, and more than once. Sets that overlap cannot deadlock: a client that
/// waits for a lock of a set holds only those whose names sort before it. This applies to sets only. A
/// program that holds a guard and asks for another lock must take care of the order itself.
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use std::time::Duration;
/// use leasehold::{Client, memory::MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let transfer = locks.lock_all(["account/7", "account/3"]).wait(Duration::from_secs(5));
/// let guards = transfer.acquire().await?;
/// println!("fence of the first: {:?}", guards.fence("account/7"));
/// guards.release().await;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[doc(alias = "multilock")]
#[doc(alias = "multi lock")]
#[derive(Clone, Debug)]
#[must_use = "locks do nothing until they are acquired"]
pub struct LockSet {
    client: Client,
    keys: Result<BTreeSet<Key>, Error>,
    options: LockOptions,
}

impl Client {
    /// Returns the locks called `names`, to be acquired as one. An invalid name, or an empty list of
    /// names, is reported when they are acquired.
    pub fn lock_all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> LockSet {
        LockSet::new(self.clone(), names)
    }
}

impl LockSet {
    pub(crate) fn new(client: Client, names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let keys: Result<BTreeSet<Key>, Error> = names.into_iter().map(Key::new).collect();
        let keys = keys.and_then(|keys| {
            if keys.is_empty() {
                let text = "a set of no locks: give it at least one name";
                return Err(Error::new(ErrorKind::InvalidInput, text));
            }
            Ok(keys)
        });
        Self {
            options: client.defaults(),
            client,
            keys,
        }
    }

    lock_options! { ttl, lock_delay, wait, max_hold, mode, barging }

    fn locks(&self) -> Result<Vec<Lock>, Error> {
        let lock = |key: Key| Lock::new(Arc::clone(self.client.core()), Ok(key), self.options);
        Ok(self.keys.clone()?.into_iter().map(lock).collect())
    }

    /// Acquires the locks if all are free; `None` if another owner holds one. Asks for all of them at the
    /// same time, each once. If two callers ask for overlapping sets at the same moment, both may get `None`.
    /// With a [`wait`](Self::wait) of its own, the set has that time to become free.
    ///
    /// # Errors
    ///
    /// Invalid input, which includes an empty set, or a store that could not be asked. Nothing is held
    /// then. A busy lock is not an error.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: nothing stays held.
    pub fn try_acquire(
        &self,
    ) -> impl Future<Output = Result<Option<GuardSet>, Error>> + Send + use<> {
        let set = self.clone();
        async move {
            if set.options.own_wait().is_some() {
                return match set.acquire().await {
                    Err(error) if error.is_busy() => Ok(None),
                    answer => answer.map(Some),
                };
            }
            let answers = ask_for_all(&set.locks()?).await;
            let answers: Vec<Option<Guard>> = answers.into_iter().collect::<Result<_, _>>()?;
            let guards: Option<Vec<Guard>> = answers.into_iter().collect();
            Ok(guards.map(|guards| GuardSet::of(guards).handed_out()))
        }
    }

    /// Acquires all locks, and waits for their holders.
    ///
    /// If all are free, this takes one round trip. Otherwise it keeps the locks before the first one that
    /// is not free, releases the others, and waits for the rest in the order of their names, for each as
    /// [`Lock::acquire`] does. If a lock is lost meanwhile, it releases all of them and starts again within
    /// the same wait.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] with the lock that another owner still held when the wait ended.
    /// [`ErrorKind::Lost`] if the longest hold of a lock ended while the set waited for others. Otherwise
    /// as [`Lock::acquire`]. Nothing is held then.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: nothing stays held or queued.
    pub fn acquire(&self) -> impl Future<Output = Result<GuardSet, Error>> + Send + use<> {
        let set = self.clone();
        async move {
            let locks = set.locks()?;
            let clock = &set.client.env().clock;
            let end = set.options.wait.map(|wait| clock.now() + wait);
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
                        let text = "max_hold ended before the last grant arrived";
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
    let asked = locks
        .iter()
        .map(|lock| lock.clone().without_wait().try_acquire());
    join_all(asked).await
}

/// Asks for all locks at the same time, and keeps those before the first one that is not granted.
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

/// Waits for the locks that are not held yet, one after the other. Returns a lock that was lost meanwhile.
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
