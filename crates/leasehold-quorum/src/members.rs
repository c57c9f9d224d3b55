/// A set of members, by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members(u64);

impl Members {
    /// Returns the first `count` members.
    pub(crate) fn first(count: usize) -> Self {
        Self((1 << count) - 1)
    }

    pub(crate) fn insert(&mut self, member: usize) {
        self.0 |= 1 << member;
    }

    pub(crate) fn contains(self, member: usize) -> bool {
        self.0 & (1 << member) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let next = (left != 0).then(|| left.trailing_zeros() as usize);
            left &= left.saturating_sub(1);
            next
        })
    }
}
