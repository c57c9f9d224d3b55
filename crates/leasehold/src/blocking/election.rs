use std::time::Duration;

use crate::error::Error;
use crate::guard::Ended;
use crate::leader::{Leader, LeaderChange};

/// A blocking [`crate::Election`].
///
/// # Examples
///
/// ```
/// use leasehold::{LeaderChange, MemoryStore, blocking};
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
pub struct Election(pub(super) crate::Election);

impl Election {
    settings! { Election:
        ttl(Duration), wait(Duration), max_hold(Duration),
        lock_delay(Duration), look_every(Duration),
    }

    /// As [`crate::Election::value`].
    pub fn value(self, value: impl Into<String>) -> Self {
        Self(self.0.value(value))
    }

    /// Waits until it is this one's turn to lead, and announces it.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Election::campaign`].
    pub fn campaign(&self) -> Result<Leadership, Error> {
        pollster::block_on(self.0.campaign()).map(Leadership)
    }

    /// Who leads now; `None` if nobody is known to.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Election::leader`].
    pub fn leader(&self) -> Result<Option<Leader>, Error> {
        pollster::block_on(self.0.leader())
    }

    /// Who leads, and every change of that.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Election::observe`].
    pub fn observe(&self) -> Result<LeaderWatch, Error> {
        self.0.observe().map(LeaderWatch)
    }
}

/// A blocking [`crate::LeaderWatch`]: an iterator that waits for each change.
#[derive(Debug)]
#[must_use = "a watch looks only while it is asked"]
pub struct LeaderWatch(crate::LeaderWatch);

impl Iterator for LeaderWatch {
    type Item = LeaderChange;

    fn next(&mut self) -> Option<LeaderChange> {
        pollster::block_on(self.0.next())
    }
}

/// A blocking [`crate::Leadership`], which it dereferences to for everything that only looks.
#[derive(Debug)]
#[must_use = "if unused the leadership ends at once"]
#[clippy::has_significant_drop]
pub struct Leadership(crate::Leadership);

impl Leadership {
    /// As [`crate::Leadership::publish`].
    ///
    /// # Errors
    ///
    /// Those of [`crate::Leadership::publish`].
    pub fn publish(&self, value: impl Into<String>) -> Result<(), Error> {
        pollster::block_on(self.0.publish(value))
    }

    /// Runs `body` while this one leads. A thread cannot be cancelled: `body` looks at the leadership, by
    /// [`ensure`](crate::Leadership::ensure), before each step that matters, and one that goes on for long
    /// publishes now and then, for servers that forgot it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the leadership was lost before `body` ended.
    pub fn lead<T>(&self, body: impl FnOnce(&Self) -> T) -> Result<T, Error> {
        let output = body(self);
        self.0.ensure(Duration::ZERO).map(|()| output)
    }

    /// Stops leading, and says how that ended.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Leadership::resign`].
    pub fn resign(self) -> Result<Ended, Error> {
        pollster::block_on(self.0.resign())
    }
}

impl std::ops::Deref for Leadership {
    type Target = crate::Leadership;

    fn deref(&self) -> &crate::Leadership {
        &self.0
    }
}
