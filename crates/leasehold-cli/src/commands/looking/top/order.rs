//! Which locks the view shows, and in which order.

use std::cmp::{Ordering, Reverse};
use std::time::Duration;

use leasehold::look::{Holder, ListedLock};

use crate::commands::looking::top::snapshot::Snapshot;

/// The order of the locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Name,
    /// The longest hold first.
    Held,
    /// The lease that ends first.
    Expiry,
    /// The longest known queue first.
    Waiters,
    Host,
}

impl Sort {
    const ALL: [Self; 5] = [
        Self::Name,
        Self::Held,
        Self::Expiry,
        Self::Waiters,
        Self::Host,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Held => "held for",
            Self::Expiry => "expires in",
            Self::Waiters => "waiters",
            Self::Host => "host",
        }
    }

    pub(super) fn next(self) -> Self {
        let index = Self::ALL.iter().position(|it| *it == self).unwrap_or(0);
        Self::ALL[(index + 1) % Self::ALL.len()]
    }
}

/// Whether a text of the lock or of its holders contains `filter`.
pub(super) fn matches(lock: &ListedLock, filter: &str) -> bool {
    let holds = |text: &str| text.to_lowercase().contains(filter);
    let mut holders = lock.holders.iter();
    filter.is_empty()
        || holds(lock.key.as_str())
        || holders.any(|sight| holds(&sight.holder.to_string()))
}

pub(super) fn order(sort: Sort, a: &ListedLock, b: &ListedLock, snapshot: &Snapshot) -> Ordering {
    let first = |lock: &ListedLock| lock.holders.first().map(|sight| sight.holder.clone());
    let by = |of: fn(&Holder) -> Option<Duration>| {
        let last = |lock| first(lock).as_ref().and_then(of).unwrap_or(Duration::MAX);
        last(a).cmp(&last(b))
    };
    let queue = |lock: &ListedLock| snapshot.queues.get(&lock.key).map_or(0, Vec::len);
    match sort {
        Sort::Name => Ordering::Equal,
        Sort::Held => by(|holder| {
            let since = holder.since?;
            Some(Duration::from_micros(since.as_micros()))
        }),
        Sort::Expiry => by(|holder| holder.remaining),
        Sort::Waiters => Reverse(queue(a)).cmp(&Reverse(queue(b))),
        Sort::Host => {
            let host = |lock| first(lock).and_then(|it| it.client).map(|it| it.host);
            host(a).cmp(&host(b))
        }
    }
}
