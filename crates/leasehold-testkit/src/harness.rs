use std::fmt::Debug;
use std::sync::Arc;

use leasehold::Key;
use leasehold::store::{Session, Store};

/// One store as the contract suite sees it: a set of locks. This process and others can open them again and
/// again, and the suite can break them from outside.
///
/// It lives as long as the suite runs. Dropping it stops the servers and removes their files. The suite
/// never calls the methods that it says it cannot offer.
pub trait Harness: Debug + Send + Sync {
    /// Opens the locks again, as another process would. The store shares no connection or table with stores
    /// opened before.
    fn open(&self) -> Arc<dyn Store>;

    /// Returns what another process passes to [`Suite::open_at`] to reach the same locks.
    fn address(&self) -> String;

    /// Returns the stores that grant the locks, one by one: the members of a quorum, or the store itself.
    fn places(&self) -> Vec<Arc<dyn Store>>;

    /// Removes every trace of `key` behind the store's back, including its fence counter.
    fn forget(&self, key: &Key);

    /// Returns words that no description and no error may contain.
    fn secrets(&self) -> Vec<String>;
}

/// A store that must keep the contract, and how its tests reach it.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// The store's name, which all its tests begin with.
    pub name: &'static str,
    /// Sets the store up. Called once, before its first test.
    pub start: fn() -> Arc<dyn Harness>,
    /// Opens a store by its [`Harness::address`] in another process; `None` for locks that exist in only
    /// one process.
    pub open_at: Option<OpenAt>,
    /// The optional traits that the store does not have. The suite checks that they are absent, and
    /// ignores their tests; it checks that all others are present.
    pub without: &'static [Optional],
}

impl Suite {
    /// Whether the store has this optional trait.
    pub(crate) fn offers(&self, part: Optional) -> bool {
        !self.without.contains(&part)
    }
}

/// An optional trait of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optional {
    /// [`leasehold::store::Inspection`].
    Inspection,
    /// [`leasehold::store::Admin`].
    Admin,
    /// [`leasehold::store::Records`].
    Records,
    /// [`leasehold::store::Health`].
    Health,
}

impl Optional {
    /// Every optional trait.
    pub const ALL: [Self; 4] = [Self::Inspection, Self::Admin, Self::Records, Self::Health];

    /// The name of the trait.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inspection => "Inspection",
            Self::Admin => "Admin",
            Self::Records => "Records",
            Self::Health => "Health",
        }
    }

    /// Whether `session` returns the trait.
    pub(crate) fn is_offered(self, session: &dyn Session) -> bool {
        match self {
            Self::Inspection => session.inspection().is_some(),
            Self::Admin => session.admin().is_some(),
            Self::Records => session.records().is_some(),
            Self::Health => session.health().is_some(),
        }
    }
}

/// Opens a store by its address.
pub type OpenAt = fn(&str) -> Arc<dyn Store>;
