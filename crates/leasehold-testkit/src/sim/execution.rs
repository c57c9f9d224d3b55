use std::time::Duration;

use leasehold::{Mode, Owner};

/// A request as a server carried it out, one per key that it names.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Execution {
    pub(crate) server: usize,
    pub(crate) client: usize,
    pub(crate) kind: Kind,
    pub(crate) key: usize,
    pub(crate) owner: Owner,
    /// The wait that an attempt in turn is part of.
    pub(crate) waiter: Option<Owner>,
    /// It was carried out before, or belongs to a connection that was given up.
    pub(crate) stray: bool,
    /// All leases of the key.
    pub(crate) before: Vec<Stand>,
    pub(crate) after: Vec<Stand>,
}

impl Execution {
    /// The lease of its owner, before it.
    pub(crate) fn own_before(&self) -> Option<&Stand> {
        of(&self.before, self.owner)
    }

    /// The lease of its owner, after it.
    pub(crate) fn own_after(&self) -> Option<&Stand> {
        of(&self.after, self.owner)
    }
}

/// The lease of `owner` among these.
pub(crate) fn of(stands: &[Stand], owner: Owner) -> Option<&Stand> {
    stands.iter().find(|stand| stand.owner == owner)
}

/// A lease at a server, which ends there at `until` unless something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stand {
    pub(crate) owner: Owner,
    pub(crate) mode: Mode,
    pub(crate) until: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Acquire,
    Renew,
    Release,
    Seal,
    Heal,
}
