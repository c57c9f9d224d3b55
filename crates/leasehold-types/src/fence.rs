use std::fmt;
use std::num::{NonZeroU64, ParseIntError, TryFromIntError};
use std::str::FromStr;

/// A fencing token. Each grant of a key carries a greater one than every earlier grant of that key.
///
/// Pass it to the resource that the lock protects, and let the resource refuse anything smaller than the
/// greatest fence it has seen. A holder that was paused past its deadline can then do no harm.
/// `manual::fencing` describes how. Fences of different keys must not be
/// compared.
#[doc(alias = "fencing token")]
#[doc(alias = "token")]
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

impl FromStr for Fence {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl From<Fence> for u64 {
    fn from(fence: Fence) -> Self {
        fence.get()
    }
}

impl TryFrom<u64> for Fence {
    type Error = TryFromIntError;

    /// Fails for zero, which is no fence.
    fn try_from(value: u64) -> Result<Self, TryFromIntError> {
        value.try_into().map(Self)
    }
}

/// For databases, whose integers have a sign. Every fence up to [`Fence::MAX`] fits.
impl TryFrom<Fence> for i64 {
    type Error = TryFromIntError;

    fn try_from(fence: Fence) -> Result<Self, TryFromIntError> {
        fence.get().try_into()
    }
}

impl TryFrom<i64> for Fence {
    type Error = TryFromIntError;

    /// Fails for zero and for negative numbers, which are no fences.
    fn try_from(value: i64) -> Result<Self, TryFromIntError> {
        u64::try_from(value)?.try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_convert_unless_they_are_no_fence() {
        let fence = Fence::new(7).unwrap();
        assert_eq!(Fence::try_from(7_u64), Ok(fence));
        assert_eq!(Fence::try_from(7_i64), Ok(fence));
        assert_eq!("7".parse(), Ok(fence));
        assert_eq!((u64::from(fence), i64::try_from(fence)), (7, Ok(7)));
        assert_eq!(i64::try_from(Fence::MAX), Ok((1 << 53) - 1));
        assert!(Fence::try_from(0_u64).is_err() && Fence::try_from(-1_i64).is_err());
        assert!("0".parse::<Fence>().is_err());
    }
}
