use std::fmt;
use std::num::NonZeroU64;

/// A fencing token. Each grant of a key carries a greater one than every earlier grant of that key.
///
/// Pass it to the resource that the lock protects, and let the resource refuse anything smaller than the
/// greatest fence it has seen. A holder that was paused past its deadline can then do no harm.
/// [`manual::fencing`](crate::manual::fencing) describes how. Fences of different keys must not be
/// compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(NonZeroU64);

impl Fence {
    /// The greatest fence. Every store can represent it exactly, even one that counts in doubles.
    pub const MAX: Self = match Self::new((1 << 53) - 1) {
        Some(fence) => fence,
        None => unreachable!(),
    };

    /// Returns the fence with this value; `None` for zero, which is no fence.
    pub const fn new(value: u64) -> Option<Self> {
        match NonZeroU64::new(value) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }

    /// Returns the number to compare, store and send.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
