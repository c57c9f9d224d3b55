//! Shows all locks and all records of the store.

use std::sync::Arc;

use super::Client;
use crate::types::{Error, Key, LockListing, Pattern};

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
    /// use leasehold::look::Pattern;
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
            .ask(None, async move {
                let inspection = context.inspection()?;
                let mut listing = inspection.list_locks(&pattern, limit).await?;
                let locks = listing.locks.iter_mut();
                for sight in locks.flat_map(|lock| &mut lock.holders) {
                    sight.holder.count_from_grant();
                }
                Ok(listing)
            })
            .await
    }

    /// Returns the keys of the first `limit` records that match `pattern`, by name: those of
    /// [requests](Self::once), elections, and [`Guard::record`](crate::Guard::record). The value of a record may be over.
    /// For display only.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the store keeps no records; a store, or a majority of
    /// its members, that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore, look::Pattern};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let _ = locks.once("charge/4711").run(async |_| Ok::<_, String>("paid")).await?;
    /// let charges = locks.list_records(&Pattern::new("charge/*")?, 100).await?;
    /// assert_eq!(charges[0].as_str(), "charge/4711");
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn list_records(&self, pattern: &Pattern, limit: usize) -> Result<Vec<Key>, Error> {
        let (pattern, context) = (pattern.clone(), Arc::clone(&self.core.context));
        let listing = async move { context.records()?.list_records(&pattern, limit).await };
        self.core.ask(None, listing).await
    }
}
