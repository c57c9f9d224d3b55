use crate::env::BoxFuture;
use crate::types::{Error, Fence};

/// A resource that remembers the greatest fence it has seen, and refuses smaller ones.
///
/// [`Guard::fence_off`](crate::Guard::fence_off) shows it the holder's fence before the first write. Implement
/// this for the resource that a lock protects, such as a table of fences, a record or a device.
/// [`manual::fencing`](crate::manual::fencing) has the statements for SQL.
///
/// It must meet three conditions. The comparison and the update are one step, as seen by all other
/// callers. The resource checks every *write* in the same way, in one step with its effect: `fence_off` does
/// not protect a resource that does not check. And the remembered fence lives at least as long as the
/// data.
///
/// # Examples
///
/// A resource on the other side of a connection, here a table of fences:
///
/// ```
/// use leasehold::{Error, ErrorKind, Fence, fencing::Fenced};
/// use leasehold::store::BoxFuture;
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
///     fn fence_off(&self, fence: Fence) -> BoxFuture<'_, Result<(), Error>> {
///         Box::pin(async move {
///             let io = |error| Error::new(ErrorKind::Io, "fencing off").with_source(error);
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
    /// Remembers `fence` unless the resource has seen a greater one. Changes nothing else.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`](crate::ErrorKind::Fenced) if the resource has seen a greater one
    /// ([`Error::fenced`] creates it); any other kind if the resource could not be asked.
    ///
    /// # Cancel safety
    ///
    /// Implementations may be dropped at any time. The resource then remembers the fence or not. Both are
    /// harmless, because the fence was granted.
    fn fence_off(&self, fence: Fence) -> BoxFuture<'_, Result<(), Error>>;
}
