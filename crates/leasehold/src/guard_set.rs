use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::attempt::LostReason;
use crate::clock::BootInstant;
use crate::error::{Error, ErrorKind};
use crate::fence::Fence;
use crate::guard::{Ended, Guard, GuardState};
use crate::key::Key;

/// Several locks that are held as one, until they are released or dropped, or one of them is lost.
///
/// Each is a lease of its own, with its own fence, renewed by the client's keeper. As soon as one is
/// lost the set is lost, for ever. The others stay held and renewed until the set is released or
/// dropped: what was begun under them can be brought to an end first.
///
/// Dropping the set frees all locks in the background.
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use std::time::Duration;
/// use leasehold::{Client, MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let guards = locks.lock_all(["stock", "orders"]).acquire().await?;
/// guards.ensure(Duration::from_secs(5))?; // all of them, at least this long, or an error
/// for (key, fence) in guards.fences() {
///     println!("write to {key} with fence {fence}");
/// }
/// guards.release().await;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[must_use = "if unused the locks are freed at once"]
#[clippy::has_significant_drop]
pub struct GuardSet {
    /// Ordered by their keys. Empty only while the locks are being taken.
    guards: Vec<Guard>,
    alarm: Arc<Alarm>,
    /// One for each guard, polled once: its loss sounds the alarm.
    watches: Vec<Pin<Box<WaitForCancellationFutureOwned>>>,
}

/// Cancels the token of the set when the token of a guard wakes it: no task has to wait for that.
#[derive(Default)]
struct Alarm(CancellationToken);

impl GuardSet {
    /// `guards`, which are in the order of their keys.
    pub(crate) fn of(guards: impl IntoIterator<Item = Guard>) -> Self {
        let mut set = Self {
            guards: Vec::new(),
            alarm: Arc::default(),
            watches: Vec::new(),
        };
        guards.into_iter().for_each(|guard| set.add(guard));
        set
    }

    /// Adds a guard whose key sorts behind those of the others. Nobody has the set yet: what is lost of
    /// it until it is handed out leaves no work behind.
    pub(crate) fn add(&mut self, guard: Guard) {
        let mut watch = Box::pin(guard.lost_token().cancelled_owned());
        let waker = Waker::from(Arc::clone(&self.alarm));
        if watch.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(()) {
            self.alarm.0.cancel();
        }
        self.watches.push(watch);
        guard.tenure().hand_out(false);
        self.guards.push(guard);
    }

    /// The names of the locks, in their order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Key> {
        self.guards.iter().map(Guard::key)
    }

    /// The guard of the lock called `name`, if it is one of the set; to show a resource its fence,
    /// for example.
    pub fn guard(&self, name: impl AsRef<str>) -> Option<&Guard> {
        let name = name.as_ref();
        self.guards
            .iter()
            .find(|guard| guard.key().as_str() == name)
    }

    /// The guards of all locks, in the order of their names.
    pub fn guards(&self) -> impl ExactSizeIterator<Item = &Guard> {
        self.guards.iter()
    }

    /// The guards, each on its own from now on, in the order of their names.
    pub fn into_guards(self) -> impl ExactSizeIterator<Item = Guard> {
        self.guards.into_iter()
    }

    /// The fencing token of the lock called `name`, if it is one of the set.
    pub fn fence(&self, name: impl AsRef<str>) -> Option<Fence> {
        self.guard(name).map(Guard::fence)
    }

    /// Each lock with its fencing token, in the order of their names.
    pub fn fences(&self) -> impl ExactSizeIterator<Item = (&Key, Fence)> {
        self.guards.iter().map(|guard| (guard.key(), guard.fence()))
    }

    /// The earliest [`deadline`](Guard::deadline) of a lock; `None` where none has an end.
    pub fn deadline(&self) -> Option<BootInstant> {
        self.guards.iter().filter_map(Guard::deadline).min()
    }

    /// The time left until the deadline: zero once one is lost, [`Duration::MAX`] where there is
    /// none.
    pub fn remaining(&self) -> Duration {
        let left = self.guards.iter().map(Guard::remaining);
        left.min().unwrap_or_default()
    }

    /// Whether all locks are held at this instant. Once false, for ever false.
    pub fn is_valid(&self) -> bool {
        self.first_lost().is_none()
    }

    /// Whether renewals of a lock are failing, while all are still held.
    pub fn is_in_doubt(&self) -> bool {
        self.is_valid() && self.guards.iter().any(Guard::is_in_doubt)
    }

    /// Makes sure that all locks are held for at least `span` from now, even if no renewal succeeds
    /// any more. Call it before each step that must not happen without them.
    ///
    /// # Errors
    ///
    /// Those of [`Guard::ensure`], for the first lock that is not.
    pub fn ensure(&self, span: Duration) -> Result<(), Error> {
        self.guards.iter().try_for_each(|guard| guard.ensure(span))
    }

    /// Resolves as soon as one lock is lost, by itself, with its name and the reason. In a forked
    /// child at once.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn lost(&self) -> (Key, LostReason) {
        loop {
            if let Some(lost) = self.first_lost() {
                return lost;
            }
            self.alarm.0.cancelled().await;
        }
    }

    /// A token that is cancelled once one lock is lost, for handing to the work they protect. It
    /// outlives the set, and a release does not cancel it.
    pub fn lost_token(&self) -> CancellationToken {
        self.alarm.0.clone()
    }

    /// Resolves with the [`deadline`](Self::deadline) as soon as it is another than `from`. For
    /// passing it on to somebody who must keep it too.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the next call sees whatever was missed.
    pub async fn deadline_moved(&self, from: Option<BootInstant>) -> Option<BootInstant> {
        loop {
            // Before the question: what moves after it is noticed by the next wait.
            let seen: Vec<_> = self.guards.iter().map(Guard::deadline).collect();
            let deadline = seen.iter().flatten().min().copied();
            if deadline != from {
                return deadline;
            }
            let guards = self.guards.iter().zip(seen);
            select_all(guards.map(|(guard, seen)| Box::pin(guard.deadline_moved(seen)))).await;
        }
    }

    /// Frees all locks at the same time, and says of each how that ended, in the order of their
    /// names: as [`Guard::release`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing but that the answers are not heard: the locks are freed
    /// in the background.
    pub async fn release(self) -> Vec<(Key, Result<Ended, Error>)> {
        let releases = self.guards.into_iter().map(|guard| async move {
            let key = guard.key().clone();
            (key, guard.release().await)
        });
        join_all(releases).await
    }

    /// Gives all guards up at the same time, and leaves the locks shut for at least `span`: as
    /// [`Guard::leave_for`], of which it says for each lock how that went.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing but that the answers are not heard.
    pub fn leave_for(
        self,
        span: Duration,
    ) -> impl Future<Output = Vec<(Key, Result<(), Error>)>> + Send + use<> {
        let leave = |guard: Guard| {
            let key = guard.key().clone();
            let leaving = guard.leave_for(span);
            async move { (key, leaving.await) }
        };
        join_all(self.guards.into_iter().map(leave).collect::<Vec<_>>())
    }

    /// As [`Guard::give_up`], for all locks.
    pub fn give_up(&self) {
        self.guards.iter().for_each(Guard::give_up);
    }

    /// The set as its caller gets it.
    pub(crate) fn handed_out(self) -> Self {
        let tenures = self.guards.iter().map(Guard::tenure);
        tenures.for_each(|tenure| tenure.hand_out(true));
        self
    }

    /// Runs `body` while the locks are held: cancels it (drops it) as soon as one is lost, and frees
    /// them only after it stopped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`] with the name of the lock if one was lost before `body` ended; its
    /// output, if there was one, is dropped. A release that fails afterwards is logged, not
    /// returned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `body` first, then frees the locks in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// if let Some(guards) = locks.lock_all(["stock", "orders"]).try_acquire().await? {
    ///     let moved = guards.run(async { 42 }).await?;
    ///     assert_eq!(moved, 42);
    /// }
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn run<F: Future>(self, body: F) -> Result<F::Output, Error> {
        let output = {
            let body = pin!(body);
            tokio::select! {
                biased;
                lost = self.lost() => Err(lost),
                output = body => self.first_lost().map_or(Ok(output), Err),
            }
        };
        for (key, released) in self.release().await {
            if let Err(error) = released {
                tracing::warn!(%key, %error, "release failed");
            }
        }
        output.map_err(|(key, reason)| lost_error(&key, reason))
    }

    pub(crate) fn first_lost(&self) -> Option<(Key, LostReason)> {
        self.guards.iter().find_map(|guard| match guard.state() {
            GuardState::Lost(reason) => Some((guard.key().clone(), reason)),
            GuardState::Held | GuardState::InDoubt => None,
        })
    }
}

fn lost_error(key: &Key, reason: LostReason) -> Error {
    let kind = match reason {
        LostReason::Forked => ErrorKind::Forked,
        _ => ErrorKind::Lost,
    };
    Error::new(kind, format!("lost: {reason}")).with_key(key)
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.cancel();
    }
}

impl fmt::Debug for GuardSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.guards).finish()
    }
}
