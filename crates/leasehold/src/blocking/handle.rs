use crate::blocking::{Client, Guard};
use crate::guard::ReleaseOutcome;
use crate::handle::Handle;
use crate::types::Error;

impl Guard {
    /// Detaches the lock from this process, as [`crate::Guard::into_handle`] does.
    ///
    /// # Errors
    ///
    /// The errors of [`crate::Guard::into_handle`].
    pub fn into_handle(self) -> Result<Handle, Error> {
        self.0.into_handle()
    }
}

/// # Examples
///
/// ```
/// use leasehold::{MemoryStore, blocking};
///
/// let locks = blocking::Client::new(MemoryStore::new());
/// let handle = locks.lock("deploy").acquire()?.into_handle()?;
/// let handle = locks.renew(&handle)?;
/// let guard = locks.adopt(&handle)?;
/// guard.release()?;
/// # Ok::<(), leasehold::Error>(())
/// ```
impl Client {
    /// Renews the lease of a handle once, as [`crate::Client::renew`] does.
    ///
    /// # Errors
    ///
    /// The errors of [`crate::Client::renew`].
    pub fn renew(&self, handle: &Handle) -> Result<Handle, Error> {
        pollster::block_on(self.0.renew(handle))
    }

    /// Takes a handle back, as [`crate::Client::adopt`] does.
    ///
    /// # Errors
    ///
    /// The errors of [`crate::Client::adopt`].
    pub fn adopt(&self, handle: &Handle) -> Result<Guard, Error> {
        pollster::block_on(self.0.adopt(handle)).map(Guard)
    }

    /// Releases the lock of a handle, as [`crate::Client::release`] does.
    ///
    /// # Errors
    ///
    /// The errors of [`crate::Client::release`].
    pub fn release(&self, handle: &Handle) -> Result<ReleaseOutcome, Error> {
        pollster::block_on(self.0.release(handle))
    }
}
