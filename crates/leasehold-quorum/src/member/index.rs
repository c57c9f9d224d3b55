use std::fmt;

use typed_index_collections::TiVec;

/// The number of a member: its position among the ids of its quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberIndex(usize);

/// A value for each member.
pub type PerMember<T> = TiVec<MemberIndex, T>;

impl MemberIndex {
    /// The first member.
    pub const FIRST: Self = Self(0);
}

impl From<usize> for MemberIndex {
    #[inline]
    fn from(number: usize) -> Self {
        Self(number)
    }
}

impl From<MemberIndex> for usize {
    #[inline]
    fn from(member: MemberIndex) -> Self {
        member.0
    }
}

impl fmt::Display for MemberIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Members(u64);

impl Members {
    /// Returns the first `count` members.
    #[inline]
    pub(crate) fn first(count: usize) -> Self {
        Self((1 << count) - 1)
    }

    #[inline]
    pub(crate) fn only(member: MemberIndex) -> Self {
        Self(1 << member.0)
    }

    #[inline]
    pub(crate) fn insert(&mut self, member: MemberIndex) {
        self.0 |= 1 << member.0;
    }

    #[inline]
    pub(crate) fn remove(&mut self, member: MemberIndex) {
        self.0 &= !(1 << member.0);
    }

    #[inline]
    pub(crate) fn contains(self, member: MemberIndex) -> bool {
        self.0 & (1 << member.0) != 0
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns the members, in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = MemberIndex> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let next = (left != 0).then(|| MemberIndex(left.trailing_zeros() as usize));
            left &= left.saturating_sub(1);
            next
        })
    }
}
