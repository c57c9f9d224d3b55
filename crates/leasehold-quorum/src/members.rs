/// A set of members, by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Members(u64);

impl Members {
    /// Returns the first `count` members.
    #[inline]
    pub(crate) fn first(count: usize) -> Self {
        Self((1 << count) - 1)
    }

    #[inline]
    pub(crate) fn only(member: usize) -> Self {
        Self(1 << member)
    }

    #[inline]
    pub(crate) fn insert(&mut self, member: usize) {
        self.0 |= 1 << member;
    }

    #[inline]
    pub(crate) fn remove(&mut self, member: usize) {
        self.0 &= !(1 << member);
    }

    #[inline]
    pub(crate) fn contains(self, member: usize) -> bool {
        self.0 & (1 << member) != 0
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns the numbers of the members, in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let next = (left != 0).then(|| left.trailing_zeros() as usize);
            left &= left.saturating_sub(1);
            next
        })
    }
}
