//! What one look at the store found.

use std::collections::HashMap;

use futures_util::future::{BoxFuture, FutureExt as _, join};
use futures_util::stream::{self, StreamExt as _};
use leasehold::clock::{Clock as _, SystemClock, WallTime};
use leasehold::look::{LockListing, Pattern, Waiter};
use leasehold::member::MemberHealth;
use leasehold::store::Order;
use leasehold::{Client, Error, Key};

/// The locks of a store, the queues of those that are on the screen, and the servers.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) at: WallTime,
    pub(super) listing: LockListing,
    /// Without an entry, the queue was not read.
    pub(super) queues: HashMap<Key, Vec<Waiter>>,
    /// The servers of a quorum, each with why it has no vote, if it has none.
    pub(super) members: Vec<(String, Option<String>)>,
}

/// How many queues are read at once.
const QUEUES_AT_ONCE: usize = 16;

/// Reads the first `limit` locks that match, the queues of `shown`, and the state of the servers.
pub(super) fn read(
    client: Client,
    pattern: Pattern,
    limit: usize,
    shown: Vec<Key>,
) -> BoxFuture<'static, Result<Snapshot, Error>> {
    async move {
        let has_queue = client.guarantees().order != Order::Unordered;
        let shown = if has_queue { shown } else { Vec::new() };
        let queues = stream::iter(shown)
            .map(|key| async {
                let waiters = client.waiters(key.as_str()).await;
                waiters.map(|waiters| (key, waiters))
            })
            .buffered(QUEUES_AT_ONCE)
            .collect::<Vec<_>>();
        let listing = client.list_locks(&pattern, limit);
        let ((listing, queues), health) = join(join(listing, queues), client.health()).await;
        Ok(Snapshot {
            at: SystemClock.wall(),
            listing: listing?,
            queues: queues.into_iter().collect::<Result<_, _>>()?,
            members: health?.iter().map(vote).collect(),
        })
    }
    .boxed()
}

/// The name of a server, and why it has no vote.
fn vote(member: &MemberHealth) -> (String, Option<String>) {
    let why = match (&member.status, &member.untrusted_reason) {
        (Err(error), _) => Some(error.reason().to_owned()),
        (Ok(_), Some(failure)) => Some(failure.error.reason().to_owned()),
        (Ok(_), None) => None,
    };
    (member.id.to_string(), why)
}
