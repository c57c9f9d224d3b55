use std::time::Duration;

use crate::BoxFuture;
use crate::error::Error;
use crate::fence::Fence;
use crate::guard::Guard;

/// A resource that remembers the greatest fence it was shown, and refuses smaller ones.
///
/// [`Guard::claim`](crate::Guard::claim) shows it the holder's fence before the first write. A
/// program implements this for what its lock protects: a table of fences, a record, a device.
/// [`manual::fencing`](crate::manual::fencing) has the statements for SQL.
///
/// Three things make it a fence. The comparison and the remembering are one step, as seen by all
/// other callers. Every *write* is checked in the same way, in one step with its effect: a claim
/// keeps nobody out of a resource that does not look. And what is remembered lives at least as long
/// as the data.
///
/// # Examples
///
/// A resource on the other side of a connection, here a table of fences:
///
/// ```
/// use leasehold::{BoxFuture, Error, ErrorKind, Fence, Fenced};
///
/// # struct Connection;
/// # impl Connection {
/// #     async fn raise(&self, _: &str, _: i64) -> Result<u64, std::io::Error> { Ok(1) }
/// # }
/// struct Invoices {
///     database: Connection,
/// }
///
/// impl Fenced for Invoices {
///     fn claim(&self, fence: Fence) -> BoxFuture<'_, Result<(), Error>> {
///         Box::pin(async move {
///             let io = |error| Error::new(ErrorKind::Io, "claiming").with_source(error);
///             let number = fence.get() as i64; // at most Fence::MAX
///             // INSERT … ON CONFLICT … DO UPDATE … WHERE …, in a transaction of its own
///             match self.database.raise("invoices", number).await.map_err(io)? {
///                 0 => Err(Error::fenced(fence, None)),
///                 _ => Ok(()),
///             }
///         })
///     }
/// }
/// ```
pub trait Fenced: Send + Sync {
    /// Remembers `fence` unless a greater one was shown before. Changes nothing else.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`](crate::ErrorKind::Fenced) if a greater one was shown before
    /// ([`Error::fenced`] makes it); anything else if the resource could not be asked.
    ///
    /// # Cancel safety
    ///
    /// Implementations may be dropped at any time. The fence is then remembered or not, and either
    /// does no harm: it was granted, so it is the right one.
    fn claim(&self, fence: Fence) -> BoxFuture<'_, Result<(), Error>>;
}

impl Guard {
    /// Announces this holder at `resource`, which from then on refuses every earlier one, though
    /// nothing has been written yet. Call it first thing after the lock was granted: until then an
    /// earlier holder that was paused can still write there.
    ///
    /// It protects what `resource` checks, and nothing else: each write must show the fence too. In
    /// shared mode each reader has a fence of its own, and the claim of the latest would refuse the
    /// others, who hold the lock as well: claiming is for those who hold it alone.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`](crate::ErrorKind::Fenced) if a later holder was there before: give up,
    /// the lock is not held any more. [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the guard is
    /// lost before `resource` answered, which may know the fence then; that does no harm. Whatever
    /// else `resource` reports; then nothing may be relied on.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; whether the fence was claimed is then not known.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, FenceGate, MemoryStore};
    ///
    /// let (locks, gate) = (Client::new(MemoryStore::new()), FenceGate::new());
    /// let guard = locks.lock("report").acquire().await?;
    /// guard.claim(&gate).await?;
    /// gate.run(guard.fence(), || { /* write */ })?;
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn claim(&self, resource: &(impl Fenced + ?Sized)) -> Result<(), Error> {
        self.ensure(Duration::ZERO)?;
        tokio::select! {
            biased;
            claimed = resource.claim(self.fence()) => {
                claimed.map_err(|error| error.with_key(self.key()))?;
            }
            _ = self.lost() => {}
        }
        self.ensure(Duration::ZERO)
    }
}
