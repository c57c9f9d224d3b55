use std::sync::Arc;
use std::time::Duration;

use crate::types::Fence;

/// The committed result of a request.
///
/// Two reads of one result differ in `remaining`, so compare its `fence` and `bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnceResult {
    /// What the attempt committed.
    pub bytes: Arc<[u8]>,
    /// The fence of the attempt that committed it.
    pub fence: Fence,
    /// How much longer the store keeps it, counted from the time of the request.
    pub remaining: Duration,
}

impl OnceResult {
    pub(crate) fn new(bytes: Arc<[u8]>, fence: Fence, remaining: Duration) -> Self {
        Self {
            bytes,
            fence,
            remaining,
        }
    }
}
