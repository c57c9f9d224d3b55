use std::time::Duration;

use crate::client::Client;
use crate::types::Error;

impl Client {
    /// Waits until the store confirmed the releases of this client, for at most `limit`: those in progress, those of dropped
    /// guards, and those of cancelled attempts.
    ///
    /// Other clones and guards stay usable. Drop the guards first: a lock that is held stays held.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable), with [`Effect::Unknown`](crate::Effect::Unknown), if
    /// releases are not confirmed. The error says how many. Their locks may stay held until their TTL is over; the thread
    /// goes on with the releases while the process lives. [`ErrorKind::Forked`](crate::ErrorKind::Forked) in a forked child, and
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the client has no thread.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. The thread continues the work in progress.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::time::Duration;
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let guard = locks.lock("nightly").acquire().await?;
    /// drop(guard);
    /// if let Err(error) = locks.close(Duration::from_secs(5)).await {
    ///     eprintln!("{error}");
    /// }
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    #[doc(alias = "shutdown")]
    #[doc(alias = "flush")]
    pub async fn close(self, limit: Duration) -> Result<(), Error> {
        self.core.flush(limit).await
    }
}
