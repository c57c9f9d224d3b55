use std::future::pending;

use leasehold::clock::BootInstant;
use leasehold::look::Owner;
use leasehold::{Guard, GuardSet};
use serde_json::{Map, Value};

use crate::locks::borrowed_lock::BorrowedLock;
use crate::locks::lost_lock::LostLock;
use crate::locks::outer_runs::OuterLock;
use crate::locks::release::{Released, Releasing};
use crate::output::message;

/// The locks under which the command runs.
pub(crate) enum HeldLocks {
    /// Locks that this run took.
    Own(GuardSet),
    /// A lock of an outer run.
    Borrowed(BorrowedLock),
}

impl HeldLocks {
    /// Each lock with its fence.
    pub(crate) fn fences(&self) -> Map<String, Value> {
        match self {
            Self::Own(guards) => message::fences(guards),
            Self::Borrowed(borrowed) => {
                let lock = borrowed.lock();
                [(lock.name().to_owned(), lock.fence().into())]
                    .into_iter()
                    .collect()
            }
        }
    }

    /// The locks that this run took in the store with its locks there.
    pub(crate) fn taken(&self, store: &str) -> Vec<OuterLock> {
        match self {
            Self::Own(guards) => guards
                .guards()
                .map(|guard| OuterLock::of(guard, store))
                .collect(),
            Self::Borrowed(_) => Vec::new(),
        }
    }

    /// The attempts that acquired the locks of this run.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> {
        let guards = match self {
            Self::Own(guards) => Some(guards.guards().map(Guard::owner)),
            Self::Borrowed(_) => None,
        };
        guards.into_iter().flatten()
    }

    /// The texts of the handles of the locks that this run took. Empty if locks end with their process.
    pub(crate) fn handles(&self) -> Vec<String> {
        match self {
            Self::Own(guards) => {
                let handles = guards.guards().map(Guard::handle);
                handles.flatten().map(|handle| handle.reveal()).collect()
            }
            Self::Borrowed(_) => Vec::new(),
        }
    }

    /// The instant at which the command must be gone; `None` if there is none, or if the outer run
    /// watches it.
    pub(crate) fn deadline(&self) -> Option<BootInstant> {
        match self {
            Self::Own(guards) => guards.deadline(),
            Self::Borrowed(_) => None,
        }
    }

    /// As [`GuardSet::deadline_moved`].
    pub(crate) async fn deadline_moved(&self, from: Option<BootInstant>) -> Option<BootInstant> {
        match self {
            Self::Own(guards) => guards.deadline_moved(from).await,
            Self::Borrowed(_) => pending().await,
        }
    }

    /// Resolves once a lock is lost. Cancel safe.
    pub(crate) async fn lost(&self) -> LostLock {
        match self {
            Self::Own(guards) => LostLock::of(guards.lost().await),
            Self::Borrowed(borrowed) => LostLock::borrowed(borrowed, borrowed.lost().await),
        }
    }

    /// Whether no lock is known to be lost.
    pub(crate) fn seems_valid(&self) -> bool {
        match self {
            Self::Own(guards) => guards.is_valid(),
            Self::Borrowed(_) => true,
        }
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        match self {
            Self::Own(guards) => guards.is_in_doubt(),
            Self::Borrowed(_) => false,
        }
    }

    /// The lock whose lease expires first without renewal.
    pub(crate) fn first_to_end(&self) -> String {
        match self {
            Self::Own(guards) => {
                let ending = guards.guards().filter(|guard| guard.deadline().is_some());
                let first = ending.min_by_key(|guard| guard.deadline());
                first
                    .map(|guard| guard.key().to_string())
                    .unwrap_or_default()
            }
            Self::Borrowed(borrowed) => borrowed.lock().name().to_owned(),
        }
    }

    /// Leaves the locks to their leases, without releasing them.
    pub(crate) fn give_up(&self) {
        if let Self::Own(guards) = self {
            guards.give_up();
        }
    }

    /// Ends the hold after the command has ended. A lock that was lost before counts as lost.
    pub(crate) async fn end(self, releasing: &Releasing<'_>) -> Released {
        match self {
            Self::Own(guards) => {
                let lost = match guards.is_valid() {
                    true => None,
                    false => Some(LostLock::of(guards.lost().await)),
                };
                let mut released = releasing.release(guards.into_guards()).await;
                released.lost = lost.or(released.lost);
                released
            }
            Self::Borrowed(borrowed) => {
                let reason = borrowed.last_look().await;
                Released {
                    lost: reason.map(|reason| LostLock::borrowed(&borrowed, reason)),
                    is_complete: false,
                }
            }
        }
    }
}
