//! Renews the lease of a handle, and takes it up in this process.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::Handle;
use crate::env::clock::{self, WallTime};
use crate::lease::{ClientContext, ClientCore, HeldLease};
use crate::store::{Expiry, Held, LockRequest, RenewReply};
use crate::telemetry::RenewalEnd;
use crate::types::{ClientInfo, Error, ErrorKind, exact_span};

pub(crate) fn renew(
    core: &Arc<ClientCore>,
    handle: Handle,
) -> Result<impl Future<Output = Result<Handle, Error>> + Send + use<>, Error> {
    let boot = handle.boot;
    let renewal = confirmed(core, handle)?;
    let store = Arc::clone(&core.context.store);
    Ok(async move {
        let held_lease = renewal.await?;
        Handle::of(&held_lease, boot, &*store)
            .ok_or_else(|| Error::new(ErrorKind::Unsupported, "the lock has no deadline"))
    })
}

/// Renews the lease of `handle`.
pub(crate) fn confirmed(
    core: &Arc<ClientCore>,
    handle: Handle,
) -> Result<impl Future<Output = Result<Arc<HeldLease>, Error>> + Send + use<>, Error> {
    let held_lease = take_up(core, &handle)?;
    check_ttl(&core.context, &handle)?;
    if !handle.is_portable() && !handle.is_of_this_boot() {
        return Err(handle.lost(ELSEWHERE));
    }
    let context = Arc::clone(&core.context);
    let confirming = core.run(async move {
        let outcome = confirm(&context, &held_lease).await;
        outcome.map(|()| held_lease).map_err(|error| {
            let misdirected = match error.kind() {
                ErrorKind::Lost => handle.misdirected(&*context.store),
                _ => None,
            };
            misdirected.unwrap_or_else(|| error.with_key(&handle.key))
        })
    })?;
    Ok(confirming)
}

/// Fails if locks of this store end with their client: a handle needs a lease that outlives it.
pub(crate) fn leases_stand(context: &ClientContext) -> Result<(), Error> {
    if context.guarantees.expiry == Expiry::Lease {
        return Ok(());
    }
    let store = &context.store;
    let text = format!("{store} has no handles: a lock ends there with the client that holds it");
    Err(Error::new(ErrorKind::Unsupported, text))
}

/// Returns the lease of `handle` as this client sees it: with its old deadline, and not renewed.
pub(crate) fn take_up(core: &Arc<ClientCore>, handle: &Handle) -> Result<Arc<HeldLease>, Error> {
    let context = &core.context;
    core.check_running()?;
    leases_stand(context).map_err(|error| error.with_key(&handle.key))?;
    // A store shows the process that acquired the lock as the holder, also from now on.
    let mut client = ClientInfo::clone(&context.info);
    client.id = handle.owner.client();
    let wall = context.env.clock.wall();
    let (key, owner) = (handle.key.clone(), handle.owner);
    let request = LockRequest::new(key, owner, handle.ttl, wall, Arc::new(client))
        .with_delay(handle.delay)
        .with_mode(handle.mode);
    let lease = handle.lease(core.now());
    let held_lease = HeldLease::new(core.next_lease_id(), Arc::new(request), handle.fence, lease);
    Ok(Arc::new(held_lease.with_steps_after(steps_until(wall))))
}

/// Greater than every step that an earlier guard with this fence has used: the seconds since 1970. No guard
/// writes a record more than once a second for that long, and a client that adopted the handle earlier
/// counts from an earlier second. The numbers last until the year 2106.
fn steps_until(wall: WallTime) -> u32 {
    u32::try_from(wall.as_micros() / 1_000_000).unwrap_or(u32::MAX - MOST_STEPS)
}

/// Renews the lease once, and retries until the store decides, the deadline passes, or [`TRYING_MAX`] is
/// over.
async fn confirm(context: &ClientContext, held_lease: &HeldLease) -> Result<(), Error> {
    let clock = &*context.env.clock;
    let request = (**held_lease.request()).clone().without_repair();
    let limit = request.limit();
    let held = [Held {
        request: Arc::new(request),
        fence: held_lease.fence,
    }];
    let end = clock.now() + TRYING_MAX;
    loop {
        let sent = clock.now();
        held_lease.check(sent).map_err(Error::lost)?;
        held_lease.renewing();
        let asking = context.session.renew(&held);
        let answer = clock::within(clock, sent + limit, asking).await;
        let now = clock.now();
        let answer = answer.map(|mut answers| answers.pop());
        let came_to = match &answer {
            Some(Some(answer)) => RenewalEnd::of(answer),
            Some(None) | None => RenewalEnd::Unknown,
        };
        context.metrics.renewed(came_to, now.since(sent));
        let error = match answer {
            Some(Some(RenewReply::Renewed(term))) => {
                return held_lease.renewed(term, now).map_err(Error::lost);
            }
            Some(Some(RenewReply::Lost(reason))) => {
                return Err(Error::lost(held_lease.lose(reason, now)));
            }
            Some(Some(RenewReply::Unknown(error))) => error,
            Some(None) => Error::new(ErrorKind::InvalidResponse, "not one answer per lease"),
            None => Error::new(ErrorKind::Unreachable, "no answer in time"),
        };
        held_lease.uncertain(now).map_err(Error::lost)?;
        if !error.is_retryable() || now >= end {
            return Err(error.with_unknown_effect());
        }
        clock.sleep_until(now + PAUSE).await;
    }
}

fn check_ttl(context: &ClientContext, handle: &Handle) -> Result<(), Error> {
    let terms = context.terms;
    let longest = terms.ttl_max.saturating_sub(handle.delay);
    if handle.ttl >= terms.ttl_min && handle.ttl <= longest {
        return Ok(());
    }
    let text = format!(
        "TTL {} is out of bounds; allowed are {} to {} on {}",
        exact_span(handle.ttl),
        exact_span(terms.ttl_min),
        exact_span(longest),
        context.store
    );
    Err(Error::new(ErrorKind::InvalidInput, text).with_key(&handle.key))
}

const ELSEWHERE: &str = "the handle was made on another machine or before a restart, so its deadline cannot \
                         be measured here; you can only release it";

/// How long to retry a renewal on a store that does not decide.
const TRYING_MAX: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(100);

/// More writes than one guard will ever make.
const MOST_STEPS: u32 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::env::clock::BootId;
    use crate::guard::ReleaseOutcome;
    use crate::memory::MemoryStore;

    /// Returns a handle of `x` that is read on another machine, or after a restart.
    async fn made_elsewhere(client: &Client, delay: Duration) -> Handle {
        let lock = client.lock("x").lock_delay(delay);
        let mut handle = lock.acquire().await.unwrap().into_handle().unwrap();
        handle.boot = BootId::from_bits(!handle.boot.to_bits());
        handle
    }

    fn is_free(client: &Client) -> bool {
        let taken = pollster::block_on(client.lock("x").try_acquire());
        taken.unwrap().is_some()
    }

    #[test]
    fn unmeasurable_handle_can_only_be_released() {
        let client = Client::new(MemoryStore::new());
        pollster::block_on(async {
            let handle = made_elsewhere(&client, Duration::ZERO).await;
            assert_eq!(handle.deadline(), None);
            let renewed = client.renew(&handle).await.map(drop);
            let adopted = client.adopt(&handle).await.map(drop);
            for error in [renewed.unwrap_err(), adopted.unwrap_err()] {
                assert_eq!(error.kind(), ErrorKind::Lost);
                assert!(error.to_string().contains("another machine"), "{error}");
            }
            assert!(!is_free(&client));
            assert_eq!(
                client.release(&handle).await.unwrap(),
                ReleaseOutcome::Released
            );
            assert!(is_free(&client));
        });
    }

    #[test]
    fn portable_handle_lasts_as_long_as_its_lease() {
        let client = Client::new(MemoryStore::new());
        pollster::block_on(async {
            let handle = client.lock("x").acquire().await.unwrap();
            let handle = handle.into_handle().unwrap().portable().unwrap();
            let text = handle.reveal();
            let handle: Handle = text.parse().unwrap();
            assert!(handle.is_portable() && handle.deadline().is_none());
            let renewed = client.renew(&handle).await.unwrap();
            assert!(renewed.is_portable());
            let guard = client.adopt(&renewed).await.unwrap();
            assert!(guard.is_valid() && guard.fence() == handle.fence());
            guard.release().await.unwrap();
            let lost = client.renew(&renewed).await.unwrap_err();
            assert_eq!(lost.kind(), ErrorKind::Lost);
            assert!(is_free(&client));
        });
    }

    #[test]
    fn foreign_handle_does_not_shorten_the_delay() {
        let client = Client::new(MemoryStore::new());
        pollster::block_on(async {
            let handle = made_elsewhere(&client, Duration::from_secs(20)).await;
            assert_eq!(
                client.release(&handle).await.unwrap(),
                ReleaseOutcome::WasLost
            );
            assert!(!is_free(&client));
        });
    }
}
