//! What a program says while it waits for a lock.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::look::{Holder, Owner, Waiter};
use leasehold::store::{Order, Report};
use leasehold::telemetry::{LockEvent, LockEvents};
use leasehold::{Client, Error, Key};

use crate::options::lock_options::LockOptions;
use crate::output::Output;
use crate::output::locks::wait::Wait;
use crate::output::locks::waiter_text;
use crate::output::message::Message;
use crate::output::outage::Outage;
use crate::output::quorum_shortfall::QuorumShortfall;

/// Prints who holds the lock and the position in the queue, or why no client can hold it.
pub(super) struct WaitReport<'a> {
    client: &'a Client,
    lock_options: &'a LockOptions,
    output: &'a Output,
    events: LockEvents,
    /// Which lock the store could not grant, and why, until it answers again.
    failure: Option<(Key, Error)>,
}

/// What a wait knows of the lock that it waits for.
struct Seen {
    lock: String,
    holders: Vec<Holder>,
    waiters: Vec<Waiter>,
}

/// Why a wait continues. A change of it is worth a new message.
#[derive(PartialEq, Eq)]
enum WaitReason {
    HeldBy {
        owners: Vec<Option<Owner>>,
        position: Option<u64>,
    },
    Outage(Vec<String>),
}

impl WaitReason {
    fn of(holders: &[Holder], position: Option<u64>, outage: Option<&Outage>) -> Option<Self> {
        match outage {
            Some(outage) => Some(Self::Outage(outage.causes())),
            None if holders.is_empty() => None,
            None => {
                let owners = holders.iter().map(|holder| holder.owner).collect();
                Some(Self::HeldBy { owners, position })
            }
        }
    }
}

impl<'a> WaitReport<'a> {
    /// Begins to listen to `client`.
    pub(super) fn new(
        client: &'a Client,
        lock_options: &'a LockOptions,
        output: &'a Output,
    ) -> Self {
        Self {
            client,
            lock_options,
            output,
            events: client.events(),
            failure: None,
        }
    }

    /// On a terminal prints repeatedly, otherwise each minute, for programs on each change. Never returns.
    pub(super) async fn print(mut self) {
        let output = self.output;
        let began = SystemClock.now();
        let terminal = output.has_terminal();
        let mut said: Option<WaitReason> = None;
        SystemClock.sleep_until(began + FIRST_REPORT).await;
        output.end_holding_warnings();
        loop {
            let Some(seen) = self.look().await else {
                SystemClock
                    .sleep_until(SystemClock.now() + NEXT_REPORT)
                    .await;
                continue;
            };
            let position = waiter_text::position_of(self.client.id(), &seen.waiters);
            let outage = match seen.holders.is_empty() && position.is_none() {
                true => self.outage().await,
                false => None,
            };
            let message = Message::Waiting(Wait {
                lock: &seen.lock,
                holders: &seen.holders,
                position,
                outage: outage.as_ref(),
                so_far: SystemClock.now().since(began),
            });
            let why = WaitReason::of(&seen.holders, position, outage.as_ref());
            let mut quiet = Duration::ZERO;
            if terminal {
                output.show_status(&message);
            } else if why.is_some() && said != why {
                output.print_message(&message);
                // People who read a log need no line for each change of the queue.
                match self.lock_options.json || outage.is_some() {
                    true => said = why,
                    false => quiet = REPEAT,
                }
            }
            let count = u32::try_from(seen.waiters.len()).unwrap_or(u32::MAX);
            let pause = NEXT_REPORT.max(PER_WAITER.saturating_mul(count));
            SystemClock.sleep_until(SystemClock.now() + pause).await;
            // A failure is said at once.
            within(&SystemClock, SystemClock.now() + quiet, self.hear()).await;
        }
    }

    /// What the store shows, or nothing about the lock that it failed to grant. `None` if the lock was granted meanwhile, and
    /// the request completes next; or for an earlier lease of this run, which was lost and has not expired yet.
    async fn look(&mut self) -> Option<Seen> {
        let now = SystemClock.now();
        while within(&SystemClock, now, self.hear()).await.is_some() {}
        if self.failure.is_none() {
            let looking = look(self.client, self.lock_options);
            tokio::select! {
                biased;
                () = self.hear() => {}
                seen = looking => return seen,
            }
        }
        let (key, _) = self.failure.as_ref()?;
        Some(Seen {
            lock: key.to_string(),
            holders: Vec::new(),
            waiters: Vec::new(),
        })
    }

    /// Waits until the store fails to answer the request.
    async fn hear(&mut self) {
        while let Some(event) = self.events.next().await {
            match event {
                LockEvent::Waiting {
                    key,
                    reason: Report::Unavailable(error),
                } => {
                    self.failure = Some((key, error));
                    return;
                }
                // The store answers again, for this lock of a set or for another one.
                LockEvent::Waiting { .. } | LockEvent::Acquired { .. } => self.failure = None,
                _ => {}
            }
        }
        std::future::pending::<()>().await;
    }

    /// Why no client can have the lock, if so. A store without members says it by its answer to the request.
    async fn outage(&self) -> Option<Outage> {
        let health = self.client.health().await.unwrap_or_default();
        match &self.failure {
            Some((_, error)) if health.is_empty() => Some(Outage::Failed(error.clone())),
            _ => QuorumShortfall::of(&health).map(Outage::NoQuorum),
        }
    }
}

/// Reads the holders and waiters of the first lock that the request does not hold itself. `None` if it holds all.
async fn look(client: &Client, lock_options: &LockOptions) -> Option<Seen> {
    for name in lock_options.names() {
        let holders = client.holders(name).await.unwrap_or_default();
        let is_ours = |owner: Owner| owner.client() == client.id();
        if holders.iter().any(|it| it.owner.is_some_and(is_ours)) {
            continue;
        }
        let waiters = match client.guarantees().order {
            Order::Unordered => Vec::new(),
            _ => client.waiters(name).await.unwrap_or_default(),
        };
        return Some(Seen {
            lock: name.to_owned(),
            holders,
            waiters,
        });
    }
    None
}

/// Shorter waits are not reported.
const FIRST_REPORT: Duration = Duration::from_millis(300);
const NEXT_REPORT: Duration = Duration::from_secs(1);
/// How often a log repeats that the program waits.
const REPEAT: Duration = Duration::from_secs(60);
/// Each report reads all waiters, so a longer queue gets fewer reports.
const PER_WAITER: Duration = Duration::from_millis(100);
