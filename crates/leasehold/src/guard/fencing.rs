//! Shows the fence of a guard to others.

use std::time::Duration;

use super::Guard;
use crate::fencing::{Fenced, Sequencer};
use crate::types::Error;

impl Guard {
    /// Returns the sequencer of this grant, in the present mode of the guard. The sequencer of a lost guard is
    /// outdated, as [`Client::check`](crate::Client::check) then says.
    pub fn sequencer(&self) -> Sequencer {
        Sequencer::new(self.key().clone(), self.mode(), self.fence())
    }

    /// Announces this holder to `resource`, which from then on refuses every earlier holder, even before
    /// the first write. Call it right after the lock is granted: until then, an earlier holder that was
    /// paused can still write there.
    ///
    /// It protects only what `resource` checks: each write must show the fence too. Call it only in
    /// exclusive mode. Each reader in shared mode has its own fence, so `fence_off` by the latest reader
    /// would make the resource refuse the others, which hold the lock as well.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`](crate::ErrorKind::Fenced) if a later holder has been there: give up, because
    /// the lock is no longer held. [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the guard is lost
    /// before `resource` answers; `resource` may know the fence then, which is harmless. Any other error
    /// that `resource` reports; then rely on nothing.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the fence may or may not have been remembered then.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, fencing::FenceGate, memory::MemoryStore};
    ///
    /// let (locks, gate) = (Client::new(MemoryStore::new()), FenceGate::new());
    /// let guard = locks.lock("report").acquire().await?;
    /// guard.fence_off(&gate).await?;
    /// gate.run(guard.fence(), || { /* write */ })?;
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn fence_off(&self, resource: &(impl Fenced + ?Sized)) -> Result<(), Error> {
        self.ensure(Duration::ZERO)?;
        tokio::select! {
            biased;
            done = resource.fence_off(self.fence()) => {
                done.map_err(|error| error.with_key(self.key()))?;
            }
            _ = self.lost() => {}
        }
        self.ensure(Duration::ZERO)
    }
}
