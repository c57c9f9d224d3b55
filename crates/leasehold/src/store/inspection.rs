use crate::env::BoxFuture;
use crate::types::{Error, Holder, Key, LockListing, Pattern, Waiter};

/// Shows holders, waiters and held locks: an optional part of a [`Session`](crate::store::Session).
///
/// The answers are for people and monitoring. An answer may be outdated when it arrives.
pub trait Inspection: Send + Sync {
    /// Returns the holders of `key`: none, one exclusive holder, or several that share the lock.
    ///
    /// # Contract
    ///
    /// - **H1** Names each holder's owner and, where the store knows them, its host, process and program.
    ///   The list is empty while the lock is free. A lock of another library shows as a holder without
    ///   an owner. A broken lease shows as broken while it still keeps other clients out.
    ///
    /// # Errors
    ///
    /// A store, or a majority of its members, that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>>;

    /// Returns the waiters for `key` in the order in which the store serves them. The list is empty where
    /// the store has no queue.
    ///
    /// # Contract
    ///
    /// - **H3** Names the waiters in order, if `guarantees` says first come, first served.
    ///
    /// # Errors
    ///
    /// A store, or a majority of its members, that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        let _ = key;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Returns the first `limit` held locks, by name, that match `pattern`, with their holders. Sends few
    /// requests for many locks; each request occupies a server only briefly.
    ///
    /// # Contract
    ///
    /// - **H4** Names exactly the held locks that match, sorted by name, each with its holders, and says
    ///   whether the limit left any out. A store may list data that could be a lock of another library;
    ///   it leaves such data out if the pattern does not narrow down the names.
    ///
    /// # Errors
    ///
    /// A store that does not answer, or all its members. If fewer than a majority answer, the listing names the members
    /// that did not. It also names what could not be read, if the store could read the rest.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn list_locks<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<LockListing, Error>>;
}
