use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::options::LockOptions;
use crate::env::clock::BootInstant;
use crate::guard::Guard;
use crate::lease::{ClientCore, HeldLease, Lease, LeaseTimes, Release};
use crate::store::{AcquireError, Expiry, Grant, LockRequest, Progress};
use crate::telemetry::{AttemptEnd, HoldMeter};
use crate::types::{Effect, Error, ErrorKind, Key, Owner};

/// One call of [`Session::acquire`](crate::store::Session::acquire), with an owner of its own. Unless a guard takes the
/// lease over, dropping it releases in the background what the attempt has or may have.
pub(super) struct Attempt<'a> {
    client: &'a Arc<ClientCore>,
    options: &'a LockOptions,
    pub(super) request: Arc<LockRequest>,
    /// How it ended, and whether the store may have something of it. `None` while it is under way.
    end: Option<(AttemptEnd, MayHave)>,
}

/// How long a call that gives up waits for the release of its attempt.
const CANCEL_MAX: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MayHave {
    Nothing,
    Lease,
}

impl<'a> Attempt<'a> {
    /// Begins to ask for a lock. If the call `waits`, the attempt may queue. Fails if the clock of this machine is wrong,
    /// because fences follow it.
    pub(super) fn begin(
        client: &'a Arc<ClientCore>,
        options: &'a LockOptions,
        ttl: Duration,
        key: &Key,
        waits: bool,
    ) -> Result<Self, Error> {
        let context = &client.context;
        let wall = context.env.clock.wall();
        wall.check(None)?;
        let owner = Owner::at(context.info.id, wall, &*context.env.entropy);
        let (key, info) = (key.clone(), Arc::clone(&context.info));
        let ttl_at_store = ttl + options.lock_delay;
        let mut request = LockRequest::new(key, owner, ttl_at_store, wall, info);
        request.mode = options.mode;
        request.delay = options.lock_delay;
        request.waits = waits;
        request.barges = options.barging;
        Ok(Self {
            client,
            options,
            request: Arc::new(request),
            end: None,
        })
    }

    /// Asks the store. Fails with an unknown effect if the caller did not poll for so long that the renewer released the
    /// attempt. The renewer watches an attempt once it `waits`, and from the start if leases do not end by themselves.
    pub(super) async fn ask(
        &self,
        progress: &Progress<'_>,
        waits: impl Fn() -> bool,
    ) -> Result<Grant, AcquireError> {
        let context = &self.client.context;
        let asking = context.session.acquire(&self.request, progress);
        let mut asking = pin!(self.client.call(asking));
        let expires = context.guarantees.expiry == Expiry::Lease;
        let mut watched = None;
        let answer = poll_fn(|context| {
            if watched.is_none() {
                let polled = asking.as_mut().poll(context);
                if polled.is_ready() || (expires && !waits()) {
                    return polled.map(Some);
                }
                watched = self.client.watch(&self.request);
            }
            match &watched {
                Some(watched) => watched.poll(context, |context| asking.as_mut().poll(context)),
                None => Poll::Pending,
            }
        });
        answer.await.unwrap_or_else(|| {
            // The end of the client may have missed an attempt that began to wait just then.
            context.check_open().map_err(Error::with_unknown_effect)?;
            let text =
                "the program did not poll the request for a third of its TTL, so it was released";
            let error = Error::new(ErrorKind::Unreachable, text).with_unknown_effect();
            Err(context.named(error).into())
        })
    }

    /// Takes in the answer of the store at `now`. A grant becomes a guard, unless too little of the lease is left.
    pub(super) fn end(
        mut self,
        answer: Result<Grant, AcquireError>,
        now: BootInstant,
    ) -> Result<Guard, AcquireError> {
        let grant = match answer {
            Ok(grant) => grant,
            Err(AcquireError::Busy(busy)) => {
                self.end = Some((AttemptEnd::Busy, MayHave::Nothing));
                return Err(AcquireError::Busy(busy));
            }
            Err(AcquireError::Failed(error)) => {
                self.end = Some(match error.effect() {
                    Effect::Unknown => (AttemptEnd::Unknown, MayHave::Lease),
                    Effect::None => (AttemptEnd::Failed, MayHave::Nothing),
                });
                return Err(AcquireError::Failed(error));
            }
        };
        if let Some(owner) = grant.owner.filter(|owner| *owner != self.request.owner) {
            self.request = Arc::new(LockRequest::clone(&self.request).with_owner(owner));
        }
        let age = now.since(grant.term.since);
        let is_late = grant.term.ttl.is_some() && age >= self.usable_ttl(&grant) / 3;
        if is_late {
            self.end = Some((AttemptEnd::Unknown, MayHave::Lease));
            let error = LockOptions::too_late(&self.client.context, self.request.limit());
            return Err(AcquireError::Failed(error));
        }
        self.client.context.answered();
        if let Err(error) = self.client.context.check_open() {
            self.end = Some((AttemptEnd::CutOff, MayHave::Lease));
            return Err(AcquireError::Failed(error));
        }
        self.end = Some((AttemptEnd::Granted, MayHave::Nothing));
        Ok(self.guard(&grant))
    }

    /// Releases what the attempt has or may have. Returns whether the store confirmed this within [`CANCEL_MAX`].
    /// Otherwise the release goes on in the background.
    pub(super) async fn cancel(mut self) -> bool {
        self.end = Some((AttemptEnd::CutOff, MayHave::Nothing));
        let Ok(releasing) = self.client.run(self.release()) else {
            return false;
        };
        let confirmed = self.client.within(CANCEL_MAX, releasing).await;
        confirmed.unwrap_or(false)
    }

    /// Returns whether the store confirmed the release.
    fn release(&self) -> impl Future<Output = bool> + Send + 'static {
        let mut release = Release::of_attempt(&self.request, self.client.now());
        let (context, request) = (Arc::clone(&self.client.context), Arc::clone(&self.request));
        async move {
            let outcome = release.until_answered(&context).await;
            tracing::debug!(key = %request.key, ?outcome, "freed an attempt that was not used");
            outcome.is_ok()
        }
    }

    /// Returns the TTL that the guard counts with. A server whose leases end with a session may have granted less than the
    /// request asked for.
    fn usable_ttl(&self, grant: &Grant) -> Duration {
        let asked = self.request.usable_ttl();
        match grant.term.ttl {
            Some(granted) if self.client.context.guarantees.expiry == Expiry::WithSession => {
                granted.min(asked)
            }
            _ => asked,
        }
    }

    fn guard(&self, grant: &Grant) -> Guard {
        let (client, options) = (self.client, self.options);
        let times = LeaseTimes {
            ttl: self.usable_ttl(grant),
            delay: options.lock_delay,
            max_hold: options.max_hold,
        };
        let spread = client
            .context
            .env
            .random_span(Duration::ZERO, times.spread());
        let lease = Lease::granted(times, grant.term, spread);
        let (id, request) = (client.next_lease_id(), Arc::clone(&self.request));
        let lock = (&request.key, grant.fence);
        let meter = HoldMeter::begin(&client.context.metrics, lock, grant.term.since);
        let held_lease = HeldLease::new(id, request, grant.fence, lease).measured_by(meter);
        let held_lease = Arc::new(held_lease);
        client.keep(&held_lease);
        Guard::new(held_lease, Arc::clone(client))
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let client = self.client;
        let (end, may_have) = match self.end {
            Some(ended) => ended,
            // The lease is the parent's.
            None if client.is_forked() => return,
            None => (AttemptEnd::CutOff, MayHave::Lease),
        };
        client.context.metrics.attempted(end);
        if may_have == MayHave::Lease {
            let release = self.release();
            client.clean_up(async move {
                release.await;
            });
        }
    }
}
