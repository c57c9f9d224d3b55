//! Detaches guards while their leases last.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::Handle;
use super::adopt;
use crate::env::clock::BootId;
use crate::guard::Guard;
use crate::lease::ClientCore;
use crate::types::{Error, ErrorKind};

impl Guard {
    /// Detaches the lock from the guard and leaves it held. The lease is no longer renewed, and lasts as
    /// long as its last renewal set it. A process that has the handle can adopt it before its deadline.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if locks end with their process, as on the file store: nothing could last
    /// longer. [`ErrorKind::InvalidInput`] while other [shares](Self::share) of the guard live.
    /// [`ErrorKind::Lost`] if the guard is lost. After an error the guard is gone, as if it was dropped.
    pub fn into_handle(self) -> Result<Handle, Error> {
        let client = Arc::clone(&self.hold.client);
        let key = self.key().clone();
        let refused = |kind, text: String| Err(Error::new(kind, text).with_key(&key));
        adopt::leases_stand(&client.context).map_err(|error| error.with_key(&key))?;
        if let Err(reason) = self.check_now() {
            return Err(self.lost_error(reason));
        }
        let boot = BootId::of_this_process().map_err(|error| {
            let text = "cannot tell this boot of the machine from others";
            let error = Error::new(ErrorKind::Io, text).with_source(error);
            error.with_key(&key)
        })?;
        let Some(mut hold) = Arc::into_inner(self.hold) else {
            let text =
                "other shares of the guard still hold the lock: no handle is made of one of them";
            return refused(ErrorKind::InvalidInput, text.to_owned());
        };
        client.let_go(&hold.held_lease)?;
        let Some(handle) = Handle::of(&hold.held_lease, boot, &*client.context.store) else {
            return refused(
                ErrorKind::Unsupported,
                "the lock has no deadline".to_owned(),
            );
        };
        hold.freed = true;
        Ok(handle)
    }

    /// Ends the guard, and leaves the lock closed for at least `span` from now: by a lease that is not
    /// renewed, and that outlives this process. Use it for finished work that must not start again too
    /// soon.
    ///
    /// The store measures the time. The lease is longer than `span` by a tenth and the allowance for the
    /// members' clocks, so clocks that run at different rates do not matter. If the last renewal made the
    /// lease end later, the lock opens later; a lease is never shortened.
    ///
    /// # Errors
    ///
    /// The errors of [`into_handle`](Self::into_handle) and of [`Client::renew`](crate::Client::renew); then the
    /// lock stays closed only as long as the last renewal set it, if it is held at all.
    /// [`ErrorKind::InvalidInput`] if `span` needs a longer TTL than the longest of the store
    /// ([`LeaseTerms::ttl_for`](crate::store::LeaseTerms::ttl_for)); then the lock is released.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only discards the answer.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::time::Duration;
    /// use leasehold::{Client, MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let guard = locks.lock("nightly").acquire().await?;
    /// // the work takes a second; a machine whose clock is late must not repeat it
    /// guard.leave_for(Duration::from_secs(50)).await?;
    /// assert!(locks.lock("nightly").try_acquire().await?.is_none());
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn leave_for(
        self,
        span: Duration,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let core = Arc::clone(&self.hold.client);
        let renewal = self.leave(&core, span);
        // This may be the client's last guard, and dropping a client blocks: do not do so while waiting for
        // the answer.
        async move {
            let outcome = match renewal? {
                Some(renewal) => renewal.await.map(drop),
                None => Ok(()),
            };
            drop(core);
            outcome
        }
    }

    /// Returns `None` if the lease already lasts long enough.
    fn leave(
        self,
        core: &Arc<ClientCore>,
        span: Duration,
    ) -> Result<Option<impl Future<Output = Result<Handle, Error>> + Send + use<>>, Error> {
        let terms = core.context.terms;
        let ttl = terms.ttl_for(span);
        if ttl > terms.ttl_max {
            let longest = terms.ttl_max.saturating_sub(terms.margin(terms.ttl_max));
            let text = format!(
                "left for {span:?}: at most {longest:?} on {}",
                core.context.store
            );
            return Err(Error::new(ErrorKind::InvalidInput, text).with_key(self.key()));
        }
        let end = core.now() + span;
        let deadline = self.hold.held_lease.lease_deadline();
        let mut handle = self.into_handle()?;
        // The lease's own deadline, by this process's clock, since the handle is not passed to another
        // process. Not the deadline of the longest hold, which ends with the work.
        handle.deadline = deadline.unwrap_or(handle.deadline);
        if handle.deadline >= end {
            return Ok(None);
        }
        handle.ttl = ttl;
        // The work ended cleanly.
        handle.delay = Duration::ZERO;
        handle.hold_deadline = None;
        adopt::renew(core, handle).map(Some)
    }
}
