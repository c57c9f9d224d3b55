//! What a guard of a language holds, until it is released.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use leasehold::election::Leadership;
use leasehold::once::OnceRun;
use leasehold::{Error, ErrorKind, Fence, Guard, GuardSet, GuardState, Key, LostReason};

use crate::{BoxFuture, OnceFields, locked, outcome_name, released_before};

/// A lock, a set of locks, a run of a request, or a leadership, until it is released.
///
/// Its mutex is taken by the threads of the language alone, and never while one of them waits.
pub struct Held {
    slot: Mutex<Option<Arc<Kind>>>,
    fences: Vec<(String, Fence)>,
    owner: String,
}

enum Kind {
    One(Guard),
    Set(GuardSet),
    Run(OnceRun),
    Leader(Leadership),
}

impl Held {
    fn new(kind: Kind) -> Self {
        let fences = kind
            .guards()
            .map(|guard| (guard.key().as_str().to_owned(), guard.fence()));
        let owner = kind.guards().next().map(|guard| guard.owner().to_string());
        Self {
            owner: owner.unwrap_or_default(),
            fences: fences.collect(),
            slot: Mutex::new(Some(Arc::new(kind))),
        }
    }

    /// Returns the name of the lock, or of the first one of a set.
    pub fn name(&self) -> &str {
        self.fences.first().map_or("", |(name, _)| name)
    }

    /// Returns the fence of the lock, or of the first one of a set.
    pub fn fence(&self) -> u64 {
        self.fences.first().map_or(0, |(_, fence)| fence.get())
    }

    /// Returns the identity of the hold at the store, or of the first lock of a set.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns each name and its fence.
    pub fn fences(&self) -> impl Iterator<Item = (&str, u64)> {
        self.fences
            .iter()
            .map(|(name, fence)| (name.as_str(), fence.get()))
    }

    /// Returns whether it was released, or detached as a handle.
    pub fn is_released(&self) -> bool {
        locked(&self.slot).is_none()
    }

    /// Returns whether it is held at this instant.
    pub fn is_valid(&self) -> bool {
        self.get()
            .is_ok_and(|kind| kind.guards().all(Guard::is_valid))
    }

    /// Returns the time left until the first deadline; infinite without one.
    pub fn remaining_seconds(&self) -> f64 {
        let left = self.get().map_or(Duration::ZERO, |kind| {
            kind.guards()
                .map(Guard::remaining)
                .min()
                .unwrap_or_default()
        });
        match left {
            Duration::MAX => f64::INFINITY,
            left => left.as_secs_f64(),
        }
    }

    /// Returns why it was lost.
    pub fn lost_reason(&self) -> Option<&'static str> {
        let kind = self.get().ok()?;
        kind.guards().find_map(|guard| match guard.state() {
            GuardState::Lost(reason) => Some(reason.name()),
            _ => None,
        })
    }

    /// Checks that it is held for at least `span` from now.
    ///
    /// # Errors
    ///
    /// Those of [`Guard::ensure`], and [`ErrorKind::Closed`] after a release.
    pub fn ensure(&self, span: Duration) -> Result<(), Error> {
        self.get()?
            .guards()
            .try_for_each(|guard| guard.ensure(span))
    }

    /// Enters the lock once more: the last release of the two frees it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after a release, [`ErrorKind::InvalidInput`] for a set.
    pub fn reenter(&self) -> Result<Self, Error> {
        Ok(self.get()?.guard()?.reenter().into())
    }

    /// Makes it lost, as if the program had given it up.
    pub fn give_up(&self) {
        if let Ok(kind) = self.get() {
            kind.guards().for_each(Guard::give_up);
        }
    }

    /// Frees the lock in the background, without waiting.
    pub fn discard(&self) {
        drop(self.take());
    }

    /// Frees the lock, and returns the name of the outcome. A set reports the worst outcome, a run withdraws its request,
    /// and a leadership resigns. While a call of this guard is under way, the lock is freed at the end of that call, and the
    /// outcome is `still_held`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after a release.
    pub fn release(&self) -> Result<BoxFuture<&'static str>, Error> {
        let kind = Arc::into_inner(self.taken()?);
        Ok(Box::pin(async move {
            match kind {
                None => Ok("still_held"),
                Some(Kind::One(guard)) => guard.release().await.map(outcome_name),
                Some(Kind::Set(set)) => release_set(set).await,
                Some(Kind::Run(run)) => run.give_up().await.map(|()| "released"),
                Some(Kind::Leader(leader)) => leader.resign().await.map(outcome_name),
            }
        }))
    }

    /// Resolves with the reason once it is lost, and with `None` once it is released.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after a release.
    pub fn ended(&self) -> Result<BoxFuture<Option<&'static str>>, Error> {
        let kind = self.get()?;
        let lost = match &*kind {
            Kind::Set(set) => Some(set.lost()),
            _ => None,
        };
        // The locks of a set are released together.
        let first = kind.guards().next().ok_or_else(no_single_lock)?.ended();
        Ok(Box::pin(async move {
            let reason = match lost {
                None => first.await,
                Some(lost) => one_of(lost, first).await,
            };
            Ok(reason.map(LostReason::name))
        }))
    }

    /// Renews the lease now.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after a release.
    pub fn renew(&self) -> Result<BoxFuture<()>, Error> {
        let kind = self.get()?;
        Ok(Box::pin(async move {
            for guard in kind.guards() {
                guard.renew().await?;
            }
            Ok(())
        }))
    }

    /// Turns an exclusive lock into a shared one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after a release, [`ErrorKind::InvalidInput`] for a set.
    pub fn downgrade(&self) -> Result<BoxFuture<()>, Error> {
        let kind = self.get()?;
        kind.guard()?;
        Ok(Box::pin(async move { kind.guard()?.downgrade().await }))
    }

    /// Returns a handle of the lock, which the guard still holds and renews. The text is a secret.
    ///
    /// # Errors
    ///
    /// Those of [`Guard::handle`], and those of [`reenter`](Self::reenter).
    pub fn handle(&self) -> Result<String, Error> {
        Ok(self.get()?.guard()?.handle()?.reveal())
    }

    /// Detaches the lock and leaves it held. The text of its handle is a secret.
    ///
    /// # Errors
    ///
    /// Those of [`Guard::into_handle`]; [`ErrorKind::InvalidInput`] for anything but a lock or a permit.
    pub fn into_handle(&self) -> Result<String, Error> {
        if !matches!(&*self.get()?, Kind::One(_)) {
            return Err(no_single_lock());
        }
        match Arc::into_inner(self.taken()?) {
            Some(Kind::One(guard)) => Ok(guard.into_handle()?.reveal()),
            _ => Err(Error::new(
                ErrorKind::InvalidInput,
                "a call of this guard is under way",
            )),
        }
    }

    /// Commits the result of a run.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after a release, [`ErrorKind::InvalidInput`] if it is not a run.
    pub fn commit(&self, result: Vec<u8>) -> Result<BoxFuture<OnceFields>, Error> {
        let Some(Kind::Run(run)) = Arc::into_inner(self.taken()?) else {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "only a run has a result",
            ));
        };
        Ok(Box::pin(async move {
            let done = run.commit(result).await?;
            Ok(OnceFields::of(&done))
        }))
    }

    /// Publishes a value of the leader.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after a release, [`ErrorKind::InvalidInput`] if it is not a leadership.
    pub fn publish(&self, value: String) -> Result<BoxFuture<()>, Error> {
        let kind = self.leader()?;
        Ok(Box::pin(
            async move { kind.leadership()?.publish(value).await },
        ))
    }

    /// Writes the announcement of the leader again every minute, and never resolves. Drop it before the release.
    ///
    /// # Errors
    ///
    /// Those of [`publish`](Self::publish).
    pub fn keep_announced(&self) -> Result<BoxFuture<()>, Error> {
        let kind = self.leader()?;
        Ok(Box::pin(async move {
            match kind.leadership()?.keep_announced().await {}
        }))
    }

    fn leader(&self) -> Result<Arc<Kind>, Error> {
        let kind = self.get()?;
        kind.leadership()?;
        Ok(kind)
    }

    fn get(&self) -> Result<Arc<Kind>, Error> {
        locked(&self.slot)
            .clone()
            .ok_or_else(|| released_before(self.name()))
    }

    fn take(&self) -> Option<Arc<Kind>> {
        locked(&self.slot).take()
    }

    fn taken(&self) -> Result<Arc<Kind>, Error> {
        self.take().ok_or_else(|| released_before(self.name()))
    }
}

impl Kind {
    fn guards(&self) -> impl Iterator<Item = &Guard> {
        let (one, set) = match self {
            Self::One(guard) => (Some(guard), None),
            Self::Run(run) => (Some(run.guard()), None),
            Self::Leader(leader) => (Some(leader.guard()), None),
            Self::Set(set) => (None, Some(set.guards())),
        };
        one.into_iter().chain(set.into_iter().flatten())
    }

    fn guard(&self) -> Result<&Guard, Error> {
        match self {
            Self::Set(_) => Err(no_single_lock()),
            one => one.guards().next().ok_or_else(no_single_lock),
        }
    }

    fn leadership(&self) -> Result<&Leadership, Error> {
        match self {
            Self::Leader(leader) => Ok(leader),
            _ => Err(Error::new(
                ErrorKind::InvalidInput,
                "only a leader is announced",
            )),
        }
    }
}

async fn release_set(set: GuardSet) -> Result<&'static str, Error> {
    let mut worst = "released";
    for (_, outcome) in set.release().await {
        match outcome_name(outcome?) {
            "released" => {}
            other => worst = other,
        }
    }
    Ok(worst)
}

async fn one_of(
    lost: impl Future<Output = (Key, LostReason)>,
    ended: impl Future<Output = Option<LostReason>>,
) -> Option<LostReason> {
    let (mut lost, mut ended) = (pin!(lost), pin!(ended));
    poll_fn(|cx| match lost.as_mut().poll(cx) {
        Poll::Ready((_, reason)) => Poll::Ready(Some(reason)),
        Poll::Pending => ended.as_mut().poll(cx),
    })
    .await
}

fn no_single_lock() -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        "this call needs the guard of a single lock",
    )
}

impl From<Guard> for Held {
    fn from(guard: Guard) -> Self {
        Self::new(Kind::One(guard))
    }
}

impl From<GuardSet> for Held {
    fn from(set: GuardSet) -> Self {
        Self::new(Kind::Set(set))
    }
}

impl From<OnceRun> for Held {
    fn from(run: OnceRun) -> Self {
        Self::new(Kind::Run(run))
    }
}

impl From<Leadership> for Held {
    fn from(leader: Leadership) -> Self {
        Self::new(Kind::Leader(leader))
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("fences", &self.fences)
            .finish_non_exhaustive()
    }
}
