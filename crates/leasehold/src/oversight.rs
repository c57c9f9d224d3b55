use crate::BoxFuture;
use crate::breaking::{BreakRecord, Broken};
use crate::error::Error;
use crate::key::Key;
use crate::pattern::Pattern;
use crate::survey::Survey;

/// What operators ask of a store: to see all its locks, and to break one. A part of
/// [`Store`](crate::Store).
pub trait Oversight {
    /// The held locks that match `pattern`, the first `limit` of them by name, each with its holders.
    /// Sends few requests for many locks, each of which keeps a server busy for a moment only.
    ///
    /// # Contract
    ///
    /// - **H4** Names exactly the held locks that match, by name, each with those who hold it, and
    ///   says whether the limit left any out. A store may list other data that could be a lock of another
    ///   library, and leaves it out where nothing narrows the names down.
    ///
    /// # Errors
    ///
    /// A store, or a majority of its members, that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn survey<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Survey, Error>>;

    /// Breaks the exclusive lease of `record.owner`, and keeps the record. Of whoever else holds the
    /// lock nothing is changed. Asking again is harmless.
    ///
    /// # Contract
    ///
    /// Where [`Guarantees::breaking`](crate::Guarantees::breaking) offers it; elsewhere it is refused as
    /// unsupported, and says what to do instead.
    ///
    /// - **B1** The owner's next renewal is answered
    ///   [`LostReason::Broken`](crate::LostReason::Broken), whenever it comes and in whatever mode, and
    ///   its release `WasLost`.
    /// - **B2** Unless it is broken at once, nobody is granted the lock before the lease would have
    ///   ended by its last renewal; [`Oversight::last_break`] and the holders show it meanwhile.
    /// - **B3** Where another owner holds the lock its lease stands as before, and
    ///   [`Broken::stood`](crate::Broken::stood) is false.
    /// - **B4** Broken at once, the lock is free and handed over as after a release; also one that was
    ///   broken before and is still shut.
    /// - **B5** Later fences are greater than that of the lease that was broken, and neither a renewal
    ///   nor a healing of the old owner brings it back, also once the lock is free again; nor, while it
    ///   is shut, does the same attempt when it comes once more, or a seal.
    /// - **B6** Where the lease stood the record is shown by `last_break` from then on, until the lock is
    ///   broken again or [`BreakRecord::KEPT`] is over.
    ///
    /// # Errors
    ///
    /// `effect` is `Unknown` if the lease may have been broken. A quorum whose majority did not
    /// carry it out says on how many members it was done.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the lease may or may not have been broken.
    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<Broken, Error>>;

    /// How the lock was broken last, as long as that is kept. On a quorum also a break that reached a
    /// minority only, which does not count; [`Holder::broken`](crate::Holder::broken) tells.
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
