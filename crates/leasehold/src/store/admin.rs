use crate::env::BoxFuture;
use crate::types::{BreakRecord, BrokenLease, Error, Key};

/// Breaks a lock for an operator: an optional part of a [`Session`](crate::store::Session).
///
/// Locks of a store can be broken exactly if it has this trait.
pub trait Admin: Send + Sync {
    /// Breaks the lease of `record.owner`, in any mode, and keeps the record. Changes nothing for other
    /// holders. A second call with the same record is harmless.
    ///
    /// # Contract
    ///
    /// - **B1** The store answers each later renewal by the owner, in any mode, with
    ///   [`LostReason::Broken`](crate::LostReason::Broken), and its release with `WasLost`. After another break of the lock, it
    ///   may give another reason.
    /// - **B2** Unless the lease is broken at once, it excludes the same requests as before until it
    ///   would have ended by its last renewal. Meanwhile `last_break` and the holders show the break.
    /// - **B3** The leases of other owners stay valid. If the owner has no lease,
    ///   [`BrokenLease::existed`](crate::look::BrokenLease::existed) is false.
    /// - **B4** A lock that is broken at once is free, and passes to a waiter as after a release. This
    ///   includes a lock that was broken before and is still closed.
    /// - **B5** Later fences are greater than the fence of the broken lease. No renewal and no repair of the
    ///   old owner restores the lease, not even once the lock is free again. While the lock is closed,
    ///   a resent exclusive attempt does not restore it.
    /// - **B6** If the lease existed, `last_break` returns the record until the next break of the lock, or
    ///   for [`BreakRecord::KEPT`].
    /// - **B7** A release by the owner of a broken lease ends it at once, and passes the lock on: it says that the owner
    ///   works no longer.
    ///
    /// # Errors
    ///
    /// `effect` is `Unknown` if the lease may be broken. If no majority of a quorum broke the lease, the
    /// error says how many members did.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the lease may or may not be broken.
    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<BrokenLease, Error>>;

    /// Returns the record of the last break, while the store keeps it. A quorum also returns a break that
    /// reached only a minority and has no effect; [`Holder::broken`](crate::look::Holder::broken) tells the two
    /// apart.
    ///
    /// # Errors
    ///
    /// A store, or a majority of its members, that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn last_break<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<BreakRecord>, Error>>;
}
