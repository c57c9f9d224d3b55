//! Requests that take effect once.

mod peek;
mod result;
mod run;
mod state;
mod steps;

pub use result::OnceResult;
pub use run::OnceRun;
pub(crate) use state::OnceState;

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use self::state::PayloadHash;
use crate::acquire::{LockOptions, lock_options};
use crate::client::Client;
use crate::guard::Guard;
use crate::lock::Lock;
use crate::types::{Error, ErrorKind, Holder, Key, Mode};

/// A request that takes effect once, no matter how often and by how many callers it is made: a name for it,
/// and a payload. Created by [`Client::once`](crate::Client::once).
///
/// ```
/// # pollster::block_on(async {
/// use leasehold::{Client, Guard, memory::MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let charge = locks.once("charge/4711").payload("EUR 12.00");
/// let pay = async |guard: &Guard| Ok::<_, String>(format!("paid under {}", guard.fence()));
/// let paid = charge.run(pay).await??;
/// let again = charge.run(pay).await??; // a repeated message, say: nothing is paid
/// assert_eq!((again.bytes, again.fence), (paid.bytes, paid.fence));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
///
/// The first caller runs it under the lock of that name and *commits* its result to the lock's
/// [record](crate::record::HeldRecord); later callers get that result. A caller that comes in between waits, or
/// learns that the request is in progress.
///
/// # What is promised
///
/// - **At most one result is committed** while it is kept. A commit is a write by fence: once the next
///   attempt has begun, a paused earlier attempt can no longer commit. Every caller that gets a result gets
///   the same one.
/// - **An attempt is made at least once**, and perhaps more often. If an attempt dies, is lost, or reports
///   a failure, the next caller makes another one; after a death it first waits for the lease to end. The
///   effects of an attempt on other systems are not undone. Make those systems compare
///   [fences](crate::Fence), or do only what does no harm twice.
/// - A commit needs no valid guard. A late commit is still safe if no other attempt has begun after it,
///   since fences order it and the beginning of the next attempt.
/// - If the store does not answer a commit, it is unknown whether the commit took effect; the error has
///   [`Effect::Unknown`](crate::Effect::Unknown). Ask again: the next caller finds the result, or runs the
///   request again.
/// - Results are as durable as the store's records. A quorum must consist of *durable* members. A member
///   that lost its data, joined or became durable has no vote until the retention has passed. If the others
///   are not a majority, the call fails ([`ErrorKind::NoQuorum`]). A single Redis is used as it is, and
///   forgets results with its data.
///
/// The store counts the retention from the commit on. After it the request is a new one. Until then, the
/// same name with another payload is an error. The store keeps only the SHA-256 of a payload. All callers
/// that use one name should set the same [`retention`](Self::retention).
#[doc(alias = "idempotency")]
#[doc(alias = "idempotency key")]
#[doc(alias = "deduplication")]
#[doc(alias = "exactly once")]
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is run"]
pub struct Once {
    pub(crate) client: Client,
    key: Result<Key, Error>,
    pub(crate) payload: PayloadHash,
    pub(crate) retention: Duration,
    options: LockOptions,
}

/// The state of a request for one caller.
#[derive(Debug)]
#[must_use]
pub enum OnceStart {
    /// This caller must run it: no other caller does while the guard is valid.
    Run(OnceRun),
    /// The request is done.
    Done(OnceResult),
    /// Another caller is running it; its holder, if the store knows it.
    InProgress(Option<Holder>),
}

/// How far a request is, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnceProgress {
    /// No result is kept, and no attempt has begun.
    Vacant,
    /// An attempt has begun. The lock tells whether it is still running.
    Begun,
    /// The request is done.
    Done(OnceResult),
}

impl Client {
    /// Returns the request called `name`, to be run once. An invalid name is reported when it begins.
    pub fn once(&self, name: impl AsRef<str>) -> Once {
        Once::new(self.clone(), name.as_ref())
    }
}

impl Once {
    /// The default time for which the store keeps a result.
    pub const DEFAULT_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

    /// The maximum size of a result, in bytes.
    pub const RESULT_MAX: usize = OnceState::RESULT_MAX;

    pub(crate) fn new(client: Client, name: &str) -> Self {
        Self {
            options: client.defaults(),
            client,
            key: Key::new(name),
            payload: Sha256::digest([]).into(),
            retention: Self::DEFAULT_RETENTION,
        }
    }

    /// Sets the payload: what is asked for, in any form that is the same for the same request. Default:
    /// empty.
    pub fn payload(mut self, payload: impl AsRef<[u8]>) -> Self {
        self.payload = Sha256::digest(payload).into();
        self
    }

    /// Sets how long the store keeps the result after its commit: 1 s to 10 years. Default: 24 h. It
    /// remembers for the same time that a request has begun, but for a week at most.
    ///
    /// All callers that use the name should set the same value. On a quorum a member may have missed the
    /// last write. If that write has a shorter retention than the value that it replaced, the older value
    /// shows again at this member once the newer one has expired. It may be a result that was committed on
    /// few members, or the beginning of an attempt with another payload.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    lock_options! { key, ttl, lock_delay, wait, max_hold, barging }

    /// Returns the lock under which the request runs.
    pub fn lock(&self) -> Lock {
        let core = Arc::clone(self.client.core());
        Lock::new(core, self.key.clone(), self.options)
    }

    /// Returns the result if the request is certainly done. Acquires no lock, and does not wait.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for a value that breaks a rule, and if the name was used with another
    /// payload. [`ErrorKind::Unsupported`] if the store keeps no records, or if some of its members keep
    /// nothing across a restart; the error names them. [`ErrorKind::Untrusted`] if too few members of a quorum
    /// remember the whole retention; no wait for the lock helps. Both concern requests without a result: a result that a
    /// majority of the members has is returned. [`ErrorKind::Corrupt`] if the record is
    /// damaged. A store that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn result(&self) -> Result<Option<OnceResult>, Error> {
        match self.check_unless_done().await? {
            Some(result) => Ok(Some(result)),
            None => self.settled_result().await,
        }
    }

    /// Determines whether this caller runs the request, and waits for a caller that is running it.
    ///
    /// # Errors
    ///
    /// As [`result`](Self::result), and those of [`Lock::acquire`]. If another caller is still running the
    /// request when the wait ends, that is not an error.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: nothing stays held or queued.
    pub async fn begin(&self) -> Result<OnceStart, Error> {
        if let Some(result) = self.first_look().await? {
            return Ok(OnceStart::Done(result));
        }
        match self.lock().acquire().await {
            Ok(guard) => self.under(guard).await,
            Err(error) if error.is_busy() => self.in_progress().await,
            Err(error) => Err(error),
        }
    }

    /// [`begin`](Self::begin) without waiting.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    ///
    /// # Cancel safety
    ///
    /// As [`begin`](Self::begin).
    pub async fn try_begin(&self) -> Result<OnceStart, Error> {
        if let Some(result) = self.first_look().await? {
            return Ok(OnceStart::Done(result));
        }
        match self.lock().try_acquire().await? {
            Some(guard) => self.under(guard).await,
            None => self.in_progress().await,
        }
    }

    /// [`begin`](Self::begin) for a caller that acquired the [lock](Self::lock) itself. Never returns
    /// [`OnceStart::InProgress`]. Releases the guard unless the caller must run the request.
    ///
    /// One grant should run a request once. If the lock is [reentered](Guard::reenter), and that guard enters while the
    /// request runs, the request runs a second time, and the later of the two results replaces the other.
    /// Both have the same fence, so fences cannot prevent it.
    ///
    /// # Errors
    ///
    /// As [`result`](Self::result), and those of [`HeldRecord::open`](crate::record::HeldRecord::open) and
    /// [`HeldRecord::write`](crate::record::HeldRecord::write). [`ErrorKind::InvalidInput`] for a guard of another
    /// lock, or one that is not exclusive.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: the guard is then released.
    pub async fn enter(&self, guard: Guard) -> Result<OnceStart, Error> {
        let refuse = |text: String| Err(Error::new(ErrorKind::InvalidInput, text));
        let key = self.key()?;
        if guard.key() != key {
            let text = format!(
                "a guard of {} for the request {:?}",
                guard.key(),
                key.as_str()
            );
            return refuse(text);
        }
        if guard.mode() != Mode::Exclusive {
            return refuse(format!(
                "a {} guard: a request is run by one alone",
                guard.mode()
            ));
        }
        if let Some(result) = self.check_unless_done().await? {
            guard.release_quietly().await;
            return Ok(OnceStart::Done(result));
        }
        self.under(guard).await
    }

    /// Runs `body` unless the request is done, and commits what it returns. `body` gets the guard of this attempt, for its
    /// fence, and is dropped as soon as the guard is lost. If `body` returns `Err`, nothing is committed, and the next caller
    /// runs the request again.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin) and [`OnceRun::commit`]. [`ErrorKind::Busy`] if another caller was still running it when the
    /// wait ended; [`ErrorKind::Lost`] if the guard was lost before `body` ended, with the [reason](Error::lost_reason).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `body`, and releases the lock. A commit in progress continues.
    pub async fn run<R: AsRef<[u8]>, E>(
        &self,
        body: impl AsyncFnOnce(&Guard) -> Result<R, E>,
    ) -> Result<Result<OnceResult, E>, Error> {
        let run = match self.begin().await? {
            OnceStart::Run(run) => run,
            OnceStart::Done(result) => return Ok(Ok(result)),
            OnceStart::InProgress(_) => {
                let text = "another caller is running this request";
                return Err(Error::new(ErrorKind::Busy, text).with_key(self.key()?));
            }
        };
        let guard = run.guard();
        match guard.until_lost(body(guard)).await? {
            Ok(result) => run.commit(result).await.map(Ok),
            Err(failure) => {
                run.give_up().await?;
                Ok(Err(failure))
            }
        }
    }
}
