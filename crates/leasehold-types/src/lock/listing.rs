use crate::{Error, Holder, Key, MemberFailure};

/// The held locks found by one pass over a whole store. The pass takes time and is no snapshot: it may
/// see a lock that changes hands meanwhile before or after the change.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LockListing {
    /// The locks, by name.
    pub locks: Vec<ListedLock>,
    /// Whether the limit left out further locks after the last one, by name.
    pub more: bool,
    /// The number of members of the store; 1 if it has none.
    pub members: usize,
    /// The members that did not answer.
    pub failures: Vec<MemberFailure>,
    /// Why parts of the store could not be read, such as a lock file of another user. The listing lacks their locks.
    pub unreadable: Vec<Error>,
}

impl LockListing {
    /// Returns the locks of a single place.
    pub fn new(locks: Vec<ListedLock>, more: bool) -> Self {
        Self {
            locks,
            more,
            members: 1,
            failures: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    /// Returns the same listing, which lacks what could not be read.
    #[must_use]
    pub fn with_unreadable(mut self, unreadable: Vec<Error>) -> Self {
        self.unreadable = unreadable;
        self
    }

    /// Returns whether a majority of the members answered. Otherwise the listing is what the other members know: a lock
    /// that it names may be free, and a lock that it lacks may be held.
    pub fn has_majority(&self) -> bool {
        self.members - self.failures.len() > self.members / 2
    }
}

/// One lock of a [`LockListing`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListedLock {
    /// The name of the lock.
    pub key: Key,
    /// The holders of the lock or of a part of it. The holder that most members name is first. If very
    /// many owners share a lock, the store may name only some.
    pub holders: Vec<Visibility>,
}

impl ListedLock {
    /// Returns a lock with its holders in one place.
    pub fn new(key: Key, holders: Vec<Holder>) -> Self {
        let holders = holders.into_iter().map(Visibility::new).collect();
        Self { key, holders }
    }
}

/// A holder, and how many members name it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Visibility {
    /// The holder.
    pub holder: Holder,
    /// The number of members that have its lease. A lease without a majority does not count. It is the
    /// rest of an attempt, or belongs to a lock that is being acquired or released right now.
    pub members: usize,
}

impl Visibility {
    fn new(holder: Holder) -> Self {
        Self { holder, members: 1 }
    }
}
