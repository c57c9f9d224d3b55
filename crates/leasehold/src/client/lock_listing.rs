//! Shows all locks of the store.

use std::sync::Arc;

use super::Client;
use crate::store::LockListing;
use crate::types::{Error, Pattern};

impl Client {
    /// Returns the first `limit` held locks, by name, that match `pattern`, with their holders. On a
    /// quorum, each holder comes with the number of members that name it. A Redis server leaves out the
    /// locks of other libraries, since any value could be one. If no majority of the members answered, the listing is what
    /// the others know, and [`LockListing::has_majority`] says so. For display only.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the store has no
    /// [`Inspection`](crate::store::Inspection); a store that does not answer, or all its members.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore};
    /// use leasehold::store::Pattern;
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let guard = locks.lock("invoices/2026-11").acquire().await?;
    /// let listing = locks.list_locks(&Pattern::new("invoices/*")?, 100).await?;
    /// assert_eq!(listing.locks[0].key.as_str(), "invoices/2026-11");
    /// assert_eq!(listing.locks[0].holders[0].holder.fence, Some(guard.fence()));
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn list_locks(&self, pattern: &Pattern, limit: usize) -> Result<LockListing, Error> {
        let (pattern, context) = (pattern.clone(), Arc::clone(&self.core.context));
        self.core
            .run(async move {
                let inspection = context.inspection()?;
                let mut listing = inspection.list_locks(&pattern, limit).await?;
                let locks = listing.locks.iter_mut();
                for sight in locks.flat_map(|lock| &mut lock.holders) {
                    sight.holder.count_from_grant();
                }
                Ok(listing)
            })?
            .await
    }
}
