use std::time::Duration;

use crate::client::Client;
use crate::types::Error;

impl Client {
    /// Waits until the releases and cancelled attempts in progress are finished on all members that answer.
    ///
    /// Other clones and guards stay usable. Drop the guards first: a lock that is held stays held.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked) in a forked child, and
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
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let guard = locks.lock("nightly").acquire().await?;
    /// drop(guard);
    /// locks.close().await?;
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    #[doc(alias = "shutdown")]
    #[doc(alias = "flush")]
    pub async fn close(self) -> Result<(), Error> {
        self.core.flush(None).await.map(drop)
    }

    /// [`Client::close`], for at most `limit`.
    pub(crate) async fn close_within(self, limit: Duration) -> Result<bool, Error> {
        self.core.flush(Some(limit)).await
    }
}
