//! Detaches guards while their leases last.

use std::sync::Arc;

use super::Guard;
use crate::env::clock::BootId;
use crate::handle::{Handle, leases_stand};
use crate::types::{Error, ErrorKind};

impl Guard {
    /// Returns a handle of the lock, which the guard still holds and renews.
    ///
    /// Any process that has the handle can release the lock, for example once this process has died. The guard then
    /// reports a loss.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if locks end with their process, as on the file store.
    /// [`ErrorKind::Lost`] if the guard is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let guard = locks.lock("deploy").acquire().await?;
    /// locks.release(&guard.handle()?).await?;
    /// assert!(locks.lock("deploy").try_acquire().await?.is_some());
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn handle(&self) -> Result<Handle, Error> {
        let context = &self.hold.client.context;
        leases_stand(context).map_err(|error| error.with_key(self.key()))?;
        if let Err(reason) = self.check_now() {
            return Err(self.lost_error(reason));
        }
        let boot = self.this_boot()?;
        let handle = Handle::of(&self.hold.held_lease, boot, &*context.store);
        let error = || Error::new(ErrorKind::Unsupported, "the lock has no deadline");
        handle.ok_or_else(|| error().with_key(self.key()))
    }

    fn this_boot(&self) -> Result<BootId, Error> {
        BootId::of_this_process().map_err(|error| {
            let text = "cannot tell this boot of the machine from others";
            let error = Error::new(ErrorKind::Io, text).with_source(error);
            error.with_key(self.key())
        })
    }

    /// Detaches the lock from the guard and leaves it held. The lease is no longer renewed, and lasts as
    /// long as its last renewal set it. A process that has the handle can adopt it before its deadline.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if locks end with their process, as on the file store: nothing could last
    /// longer. [`ErrorKind::InvalidInput`] while other guards of the [same hold](Self::reenter) live.
    /// [`ErrorKind::Lost`] if the guard is lost. After an error the guard is gone, as if it was dropped.
    pub fn into_handle(self) -> Result<Handle, Error> {
        let client = Arc::clone(&self.hold.client);
        let key = self.key().clone();
        leases_stand(&client.context).map_err(|error| error.with_key(&key))?;
        if let Err(reason) = self.check_now() {
            return Err(self.lost_error(reason));
        }
        let boot = self.this_boot()?;
        let mut hold = self.hold;
        if !hold.held_lease.has_one_guard() {
            let text =
                "other shares of the guard still hold the lock: no handle is made of one of them";
            return Err(Error::new(ErrorKind::InvalidInput, text).with_key(&key));
        }
        client.let_go(&hold.held_lease)?;
        let Some(handle) = Handle::of(&hold.held_lease, boot, &*client.context.store) else {
            let error = Error::new(ErrorKind::Unsupported, "the lock has no deadline");
            return Err(error.with_key(&key));
        };
        hold.leave();
        Ok(handle)
    }
}
