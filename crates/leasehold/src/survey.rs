use crate::holder::Holder;
use crate::key::Key;
use crate::member::MemberFailure;

/// The locks that somebody holds, as one look over a whole store finds them. The look takes time and
/// is no snapshot: a lock that changes hands meanwhile may be seen before or after.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Survey {
    /// The locks, by name.
    pub locks: Vec<SurveyedLock>,
    /// There are others behind the last one, by name, which the limit left out.
    pub more: bool,
    /// How many members the store has; 1 for one that has none.
    pub members: usize,
    /// The members that did not answer. The others are a majority.
    pub failures: Vec<MemberFailure>,
}

impl Survey {
    /// What one place holds.
    pub fn new(locks: Vec<SurveyedLock>, more: bool) -> Self {
        Self {
            locks,
            more,
            members: 1,
            failures: Vec::new(),
        }
    }
}

/// One lock of a [`Survey`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SurveyedLock {
    /// Its name.
    pub key: Key,
    /// Who holds it, or a part of it: whoever is named by most members first. Of a lock that very many
    /// share a store may name only some.
    pub holders: Vec<Sight>,
}

impl SurveyedLock {
    /// A lock with its holders in one place.
    pub fn new(key: Key, holders: Vec<Holder>) -> Self {
        let holders = holders.into_iter().map(Sight::new).collect();
        Self { key, holders }
    }
}

/// A holder, and how many members name it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sight {
    /// Who it is.
    pub holder: Holder,
    /// On how many members its lease stands. A lease that stands on no majority is none: it is the
    /// rest of an attempt, or of a lock that is being taken or freed right now.
    pub members: usize,
}

impl Sight {
    fn new(holder: Holder) -> Self {
        Self { holder, members: 1 }
    }
}
