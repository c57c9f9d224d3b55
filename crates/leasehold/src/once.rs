use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::claim::Mode;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::fence::Fence;
use crate::guard::Guard;
use crate::holder::Holder;
use crate::key::Key;
use crate::lock::Lock;
use crate::once_run::OnceRun;
use crate::once_state::{OnceState, PayloadHash};
use crate::records::RecordWrite;

/// A request that is to take effect once, however often it is made and by however many at a time: a
/// name for it, and what it asks for. Made by [`Client::once`](crate::Client::once).
///
/// Whoever comes first runs it under the lock of that name and *commits* its result to the lock's
/// [record](crate::HeldRecord); whoever comes later gets that result. Who comes meanwhile waits, or is told
/// that it is in progress.
///
/// # What holds
///
/// - **At most one result is committed** while it is kept. A commit is a write by fence: once the next
///   attempt has begun, an earlier one that was paused commits nothing any more. Everybody who gets a
///   result gets the same one.
/// - **An attempt is made at least once**, perhaps more often: where one dies, is lost, or fails and says
///   so, the next caller makes another one, after the lease of the one that died. What an attempt does to
///   the rest of the world is not undone. Have it compare [fences](crate::Fence) there, or do there what
///   does no harm twice.
/// - A commit needs no valid guard: one that is late is still safe if nobody has begun after it, since
///   it and the next attempt's beginning are ordered by their fences.
/// - Of a commit that was not answered nobody can tell whether it stands; its error has
///   [`Effect::Unknown`](crate::Effect::Unknown). Ask again: the next caller finds it, or runs anew.
/// - Results outlive what the store's records outlive. A quorum must be of *durable* members. A member that
///   lost its data, joined or became durable has no vote until the retention has passed; while the others are no
///   majority, the call fails ([`ErrorKind::NoQuorum`]). One Redis is used as it is, and forgets results with
///   its data.
///
/// The retention is counted by the store, from the commit on. Once it is over the request is a new one.
/// The same name with another payload is an error meanwhile. Only the SHA-256 of a payload is kept.
/// Whoever uses one name should say one retention: see [`retention`](Self::retention).
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use leasehold::{Client, MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let charge = locks.once("charge/4711").payload("EUR 12.00");
/// let pay = async |fence| Ok::<_, String>(format!("paid under {fence}"));
/// let paid = charge.run(pay).await??;
/// let again = charge.run(pay).await??; // a repeated message, say: nothing is paid
/// assert_eq!((again.bytes, again.fence), (paid.bytes, paid.fence));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is run"]
pub struct Once {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) payload: PayloadHash,
    pub(crate) retention: Duration,
    ttl: Duration,
    wait: Option<Duration>,
}

/// How a request stands for one caller.
#[derive(Debug)]
#[must_use]
pub enum OnceStart {
    /// This caller is to run it: nobody else does while the guard is valid.
    Run(OnceRun),
    /// It is done.
    Done(OnceResult),
    /// Somebody else is at it; who that is, where the store knows.
    InProgress(Option<Holder>),
}

/// The committed result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnceResult {
    /// What the attempt committed.
    pub bytes: Arc<[u8]>,
    /// The fence of the attempt that committed it.
    pub fence: Fence,
    /// For how much longer the store keeps it, counted from when it was asked.
    pub remaining: Duration,
}

impl OnceResult {
    pub(crate) fn new(bytes: Arc<[u8]>, fence: Fence, remaining: Duration) -> Self {
        Self {
            bytes,
            fence,
            remaining,
        }
    }
}

impl Once {
    /// For how long a result is kept that does not say otherwise.
    pub const DEFAULT_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

    /// The longest result.
    pub const RESULT_MAX: usize = RecordWrite::BYTES_MAX - OnceState::OVERHEAD;

    pub(crate) fn new(client: Client, name: String) -> Self {
        Self {
            client,
            name,
            payload: Sha256::digest([]).into(),
            retention: Self::DEFAULT_RETENTION,
            ttl: Lock::DEFAULT_TTL,
            wait: None,
        }
    }

    /// What is asked for, in any form that is the same for the same request. Default: nothing.
    pub fn payload(mut self, payload: impl AsRef<[u8]>) -> Self {
        self.payload = Sha256::digest(payload).into();
        self
    }

    /// For how long the result is kept, from its commit on: 1 s to 10 years. Default: 24 h. That somebody has
    /// begun is kept as long, but for a week at most.
    ///
    /// To be the same for all who use the name. On a quorum a member may have missed what was written
    /// last: if that is kept for a shorter time than what it replaced, the older value shows again
    /// there once the newer one is over. It may be a result that was committed at few members, or
    /// somebody's beginning with another payload.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    /// As [`Lock::ttl`]: how long others wait for an attempt that died.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long [`begin`](Self::begin) waits at most for an attempt of somebody else. Default: no limit.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// The lock under which the request runs.
    pub fn lock(&self) -> Lock {
        let lock = self.client.lock(&self.name).ttl(self.ttl);
        match self.wait {
            Some(wait) => lock.wait(wait),
            None => lock,
        }
    }

    /// The result, if the request is done for certain. Takes no lock, and waits for nobody.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for a value that breaks a rule, and if the name was used with another
    /// payload; [`ErrorKind::Unsupported`] where the store keeps no records, or has members that keep
    /// nothing across a restart, which it names; [`ErrorKind::Corrupt`] if the record is damaged; a store
    /// that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn result(&self) -> Result<Option<OnceResult>, Error> {
        self.check().await?;
        self.settled_result().await
    }

    /// Finds out whose it is to run the request, waiting for whoever is at it.
    ///
    /// # Errors
    ///
    /// As [`result`](Self::result), and those of [`Lock::acquire`]; but that somebody else is still at it
    /// when the wait ends is no error.
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

    /// [`begin`](Self::begin) without waiting for anybody.
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

    /// [`begin`](Self::begin) for a caller that took the [lock](Self::lock) by itself. Never
    /// [`OnceStart::InProgress`]. Unless the request is to be run, the guard is given back.
    ///
    /// One grant runs a request once: entered again with a [copy](Guard::share) of the guard while it runs,
    /// it is run a second time, and of two results the later one stands. Fences do not tell the two
    /// apart.
    ///
    /// # Errors
    ///
    /// As [`result`](Self::result), and those of [`HeldRecord::open`](crate::HeldRecord::open) and
    /// [`HeldRecord::write`](crate::HeldRecord::write). [`ErrorKind::InvalidInput`] for a guard of another
    /// lock, or one that does not hold it alone.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: the guard is then given back.
    pub async fn enter(&self, guard: Guard) -> Result<OnceStart, Error> {
        let refuse = |text: String| Err(Error::new(ErrorKind::InvalidInput, text));
        if guard.key().as_str() != self.name {
            let text = format!("a guard of {} for the request {:?}", guard.key(), self.name);
            return refuse(text);
        }
        if guard.mode() != Mode::Exclusive {
            return refuse(format!(
                "a {} guard: a request is run by one alone",
                guard.mode()
            ));
        }
        self.check().await?;
        self.under(guard).await
    }

    /// Runs `body`, which is told its fence, unless the request is done, and commits what it returns. It
    /// is cancelled (dropped) as soon as the guard is lost. What it returns as `Err` is not committed, and
    /// the next caller runs it again.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin) and [`OnceRun::commit`]; [`ErrorKind::Busy`] if somebody else was still
    /// at it when the wait ended; [`ErrorKind::Lost`] if the guard was lost before `body` ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `body`, and gives the lock back. A commit under way goes on.
    pub async fn run<B, R, E>(
        &self,
        body: impl FnOnce(Fence) -> B,
    ) -> Result<Result<OnceResult, E>, Error>
    where
        B: Future<Output = Result<R, E>>,
        R: AsRef<[u8]>,
    {
        let run = match self.begin().await? {
            OnceStart::Run(run) => run,
            OnceStart::Done(result) => return Ok(Ok(result)),
            OnceStart::InProgress(_) => {
                let text = "somebody else is at it";
                return Err(Error::new(ErrorKind::Busy, text).with_key(&Key::new(&self.name)?));
            }
        };
        let outcome = {
            let body = pin!(body(run.guard().fence()));
            tokio::select! {
                biased;
                reason = run.guard().lost() => Err(reason),
                output = body => Ok(output),
            }
        };
        match outcome {
            Ok(Ok(result)) => run.commit(result).await.map(Ok),
            Ok(Err(failure)) => {
                run.give_up().await?;
                Ok(Err(failure))
            }
            Err(reason) => {
                Err(Error::new(ErrorKind::Lost, format!("lost: {reason}"))
                    .with_key(run.guard().key()))
            }
        }
    }
}
