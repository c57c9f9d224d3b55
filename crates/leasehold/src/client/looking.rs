//! Shows the locks, the records, and the members of the store.

use std::sync::Arc;

use super::Client;
use crate::fencing::Sequencer;
use crate::types::{Error, Holder, Key, LockListing, MemberHealth, Pattern, Waiter};

impl Client {
    /// Returns the current holders of `name`. For diagnostics.
    ///
    /// # Errors
    ///
    /// An invalid name; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the store has no
    /// [`Inspection`](crate::store::Inspection); or a store that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn holders(&self, name: impl AsRef<str>) -> Result<Vec<Holder>, Error> {
        let key = Key::new(name)?;
        let context = Arc::clone(&self.core.context);
        self.core
            .ask(Some(key.clone()), async move {
                let mut holders = context.inspection()?.holders(&key).await?;
                holders.iter_mut().for_each(Holder::count_from_grant);
                Ok(holders)
            })
            .await
    }

    /// Returns the current waiters for `name` in the order in which the store serves them. The list is
    /// empty where the store has no queue. On Redis it ends after 1,000 waiters. For diagnostics.
    ///
    /// # Errors
    ///
    /// An invalid name; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the store has no
    /// [`Inspection`](crate::store::Inspection); or a store that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn waiters(&self, name: impl AsRef<str>) -> Result<Vec<Waiter>, Error> {
        let key = Key::new(name)?;
        let context = Arc::clone(&self.core.context);
        self.core
            .ask(Some(key.clone()), async move {
                context.inspection()?.waiters(&key).await
            })
            .await
    }

    /// Asks every member of the store and returns its health, in the order in which the members were
    /// given. The list is empty for a store without members. For diagnostics and monitoring.
    ///
    /// A member without a vote says why, and when it is eligible again. The first client that asks the
    /// members anything initializes the quorum, as its first lock would.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked), or a background thread that could not be
    /// started. A member that does not answer is no error: its health says so.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, Error};
    ///
    /// async fn print_health(locks: &Client) -> Result<(), Error> {
    ///     for member in locks.health().await? {
    ///         match (&member.status, &member.untrusted_reason) {
    ///             (Err(error), _) => println!("{} does not answer: {error}", member.id),
    ///             (Ok(_), Some(why)) => println!("{why}"),
    ///             (Ok(status), None) => println!("{} has a vote: {:?}", member.id, status.run),
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// // The memory store has no members: nothing is printed.
    /// let locks = Client::new(leasehold::memory::MemoryStore::new());
    /// print_health(&locks).await?;
    /// # Ok::<(), Error>(()) }).unwrap();
    /// ```
    pub async fn health(&self) -> Result<Vec<MemberHealth>, Error> {
        let context = Arc::clone(&self.core.context);
        let asking = async move {
            Ok(match context.session.health() {
                Some(health) => health.members().await,
                None => Vec::new(),
            })
        };
        self.core.ask(None, asking).await
    }

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

    /// Returns whether the store still knows the grant of `sequencer`: a client holds the lock with this fence and
    /// in this mode, and no operator broke the lease.
    ///
    /// The answer is as old as its way here: the lock may be released the next moment. A resource that compares
    /// fences in one step with each write, as [`Fenced`](crate::fencing::Fenced) describes, has no such gap.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the store has no [`Inspection`](crate::store::Inspection), or a store that
    /// does not answer: then nothing is known.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn check(&self, sequencer: &Sequencer) -> Result<bool, Error> {
        let holders = self.holders(sequencer.key().as_str()).await?;
        Ok(holders.iter().any(|holder| {
            holder.fence == Some(sequencer.fence())
                && holder.mode == sequencer.mode()
                && !holder.broken
        }))
    }
}
