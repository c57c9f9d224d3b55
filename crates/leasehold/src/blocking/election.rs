use std::time::Duration;

use crate::election::{Leader, LeaderChange};
use crate::guard::ReleaseOutcome;
use crate::runtime::background::block_on;
use crate::types::{Error, Key};

/// A blocking [`crate::election::Election`].
///
/// # Examples
///
/// ```
/// use leasehold::{blocking, election::LeaderChange, memory::MemoryStore};
///
/// let locks = blocking::Client::new(MemoryStore::new());
/// let election = locks.election("scheduler").value("10.0.0.7:8080");
/// let leadership = election.campaign()?;
/// if let Some(LeaderChange::Leads(leader)) = election.observe()?.next() {
///     assert_eq!(leader.fence, leadership.fence());
/// }
/// leadership.resign()?;
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "an election does nothing until somebody campaigns or observes"]
pub struct Election(pub(super) crate::election::Election);

impl Election {
    lock_options! { "election::Election": key, poll_interval(Duration) }

    /// Sets the value that the leader publishes, as [`crate::election::Election::value`] does.
    pub fn value(self, value: impl Into<String>) -> Self {
        Self(self.0.value(value))
    }

    calls! { "election::Election":
        /// Waits until this candidate leads, and announces it.
        fn campaign(&self) -> Leadership = Leadership;
        /// Returns the current leader; `None` if no leader is known.
        fn leader(&self) -> Option<Leader>;
    }

    /// Returns an iterator over the current leader and every change.
    ///
    /// # Errors
    ///
    /// The errors of [`crate::election::Election::observe`].
    pub fn observe(&self) -> Result<LeaderWatch, Error> {
        self.0.observe().map(LeaderWatch)
    }
}

/// A blocking [`crate::election::LeaderWatch`]: an iterator that waits for each change.
#[derive(Debug)]
#[must_use = "a watch looks only while it is asked"]
pub struct LeaderWatch(crate::election::LeaderWatch);

impl Iterator for LeaderWatch {
    type Item = LeaderChange;

    fn next(&mut self) -> Option<LeaderChange> {
        block_on(self.0.next())
    }
}

/// A blocking [`crate::election::Leadership`]. It dereferences to that type for all methods that only read.
#[derive(Debug)]
#[must_use = "if unused the leadership ends at once"]
#[clippy::has_significant_drop]
pub struct Leadership(crate::election::Leadership);

impl Leadership {
    calls! { "election::Leadership":
        /// Publishes `value` in place of the previous value.
        fn publish(&self, value: impl Into<String>) -> ();
        /// Resigns, and returns the outcome of the release.
        fn resign(self) -> ReleaseOutcome;
    }

    /// Runs `body` while this client leads, and then resigns. A thread cannot be cancelled, so `body` must call
    /// [`ensure`](crate::election::Leadership::ensure) before each step that matters. If it runs for long, it should
    /// also publish now and then, for servers that lost the announcement.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the leadership was lost before `body` ended, with the
    /// [reason](Error::lost_reason).
    pub fn run<T>(self, body: impl FnOnce(&Self) -> T) -> Result<T, Error> {
        let output = body(&self);
        block_on(self.0.run(async move |_| output))
    }
}

impl std::ops::Deref for Leadership {
    type Target = crate::election::Leadership;

    fn deref(&self) -> &crate::election::Leadership {
        &self.0
    }
}
