use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::look::Holder;
use leasehold::{Client, Effect, Error, ErrorKind, GuardSet, LockSet, Mode};

use crate::locks::borrowed_lock::{self, BorrowedLock};
use crate::locks::held_locks::HeldLocks;
use crate::locks::outer_runs::{OuterLock, OuterRuns};
use crate::locks::release::{Releasing, UNANSWERED};
use crate::locks::wait_report::WaitReport;
use crate::options::lock_options::LockOptions;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::holder_text;
use crate::output::message::Message;
use crate::output::quorum_shortfall::QuorumShortfall;
use crate::runtime::signals::Signals;
use crate::store::client::OwnClient;

/// The request for locks, and the messages while it waits.
pub(crate) struct LockRequest<'a> {
    pub(crate) client: &'a OwnClient,
    pub(crate) lock_options: &'a LockOptions,
    pub(crate) outer_runs: &'a OuterRuns,
    pub(crate) output: &'a Output,
    /// Whether --nested can run the command under a lock of an outer run.
    pub(crate) can_borrow: bool,
}

/// How a wait ended, unless it failed.
pub(crate) enum WaitOutcome {
    Held(GuardSet),
    /// This signal asked the program to end. No lock is held or queued for.
    Signalled(i32),
}

impl LockRequest<'_> {
    pub(crate) async fn acquire(&self, signals: &Signals) -> Result<WaitOutcome, Failure> {
        let began = SystemClock.now();
        self.output.begin_holding_warnings();
        let outcome = tokio::select! {
            biased;
            signal = signals.ending(self.output) => signal.map(WaitOutcome::Signalled),
            guards = self.hold() => guards.map(WaitOutcome::Held),
        };
        self.output.clear_status();
        match &outcome {
            Ok(WaitOutcome::Held(guards)) => self.output.print_message(&Message::Acquired {
                lock: &self.lock_options.name,
                guards,
                store: &self.client.to_string(),
                after: SystemClock.now().since(began),
            }),
            Ok(WaitOutcome::Signalled(_)) | Err(_) => self.report_remains().await,
        }
        outcome
    }

    /// Says if the store did not confirm that it gave up what it may have granted.
    async fn report_remains(&self) {
        if let Err(error) = self.client.finish().await
            && error.effect() == Effect::Unknown
        {
            let releasing = Releasing {
                lock_options: self.lock_options,
                output: self.output,
            };
            for lock in self.lock_options.names() {
                releasing.report(lock, Duration::ZERO, UNANSWERED);
            }
        }
    }

    /// Uses the lock that an outer run holds.
    pub(crate) async fn enter(&self, lock: OuterLock) -> Result<HeldLocks, Failure> {
        let (client, wanted) = (Client::clone(self.client), self.lock_options.mode());
        let outer_lock =
            BorrowedLock::enter(client, lock, wanted, self.lock_options.longest_ttl() / 3).await?;
        self.output.print_message(&Message::Nested {
            lock: &self.lock_options.name,
            fence: outer_lock.lock().fence(),
            store: &self.client.to_string(),
        });
        Ok(HeldLocks::Borrowed(outer_lock))
    }

    async fn hold(&self) -> Result<GuardSet, Failure> {
        let locks = self.locks_without_outer_ones().await?;
        let granted = if self.lock_options.no_wait {
            match locks.try_acquire().await {
                Ok(guards) => guards,
                Err(error) => return Err(self.failed(error).await),
            }
        } else {
            // Begins once the lock is not granted at once, and before the store can report anything.
            let report = async {
                let report = WaitReport::new(self.client, self.lock_options, self.output);
                report.print().await;
            };
            tokio::select! {
                biased;
                granted = locks.acquire() => match granted {
                    Ok(guards) => Some(guards),
                    Err(error) if error.is_busy() => None,
                    Err(error) => return Err(self.failed(error).await),
                },
                () = report => None,
            }
        };
        match granted {
            Some(guards) => Ok(guards),
            None => Err(self.busy().await),
        }
    }

    /// The locks. Refuses a lock of an outer run, which is released only after this run: the wait would
    /// never end. If an outer run shares a lock, this run acquires it ahead of the queue, because the
    /// waiters in the queue get it only after the outer run.
    async fn locks_without_outer_ones(&self) -> Result<LockSet, Failure> {
        let mut is_shared = false;
        if self.outer_runs.is_nested() {
            for name in self.lock_options.names() {
                // The next attempt reports a store that does not answer.
                let holders = self.client.holders(name).await.unwrap_or_default();
                if let Some(holder) = self.outer_runs.deadlock(&holders, self.lock_options.mode()) {
                    return Err(Failure::usage(format!(
                        "lock {name:?} is held by an outer run, {}; waiting for it {}{}",
                        holder_text::phrase(holder),
                        without_end(holder.mode, self.lock_options.mode()),
                        self.way_out(holder.mode),
                    )));
                }
                is_shared |= self.outer_runs.shares(&holders);
            }
        }
        Ok(self.lock_options.locks(self.client).barging(is_shared))
    }

    /// The option that would run the command under the lock of the outer run, if it would.
    fn way_out(&self, held: Mode) -> &'static str {
        match borrowed_lock::refusal(held, self.lock_options.mode()) {
            None if self.lock_options.also.is_empty() && self.can_borrow => {
                " (--nested runs the command under that lease)"
            }
            _ => "",
        }
    }

    async fn busy(&self) -> Failure {
        let limit = SystemClock.now() + LAST_LOOK;
        let held = match within(&SystemClock, limit, self.held_by_others())
            .await
            .flatten()
        {
            Some((name, holders)) => {
                format!(
                    "lock {name:?} is held by {}",
                    holder_text::phrases(&holders)
                )
            }
            None => {
                let names = self.lock_options.names();
                let names: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
                let names = names.join(" or ");
                format!("lock {names} was held by another client a moment ago")
            }
        };
        let waited = match self.lock_options.wait {
            Some(wait) if !self.lock_options.no_wait => {
                format!("gave up after {}: ", humantime::format_duration(wait))
            }
            _ => String::new(),
        };
        let code = ExitCode::of(self.lock_options.busy_code);
        Failure::busy(code, format!("{waited}{held}"))
    }

    /// Why the request failed, and what to do about it.
    async fn failed(&self, error: Error) -> Failure {
        let code = ExitCode::of_error(&error);
        let quorum_shortfall = match error.kind() {
            ErrorKind::NoQuorum => {
                let limit = SystemClock.now() + LAST_HEALTH;
                within(&SystemClock, limit, self.quorum_shortfall())
                    .await
                    .flatten()
            }
            _ => None,
        };
        match quorum_shortfall.and_then(|quorum_shortfall| quorum_shortfall.advice()) {
            Some(advice) => Failure::new(code, format!("{error}; {advice}")),
            None => error.into(),
        }
    }

    async fn quorum_shortfall(&self) -> Option<QuorumShortfall> {
        let health = self.client.health().await;
        QuorumShortfall::of(&health.unwrap_or_default())
    }

    /// The first lock that other clients seem to hold in a way that excludes this run.
    async fn held_by_others(&self) -> Option<(&str, Vec<Holder>)> {
        let mut held = Vec::new();
        for name in self.lock_options.names() {
            let holders = self.client.holders(name).await.unwrap_or_default();
            if !holders.is_empty() {
                held.push((name, holders));
            }
        }
        let wanted = self.lock_options.mode();
        // A lock that could be shared may be refused too, in favour of an exclusive waiter.
        let in_the_way = held.iter().position(|(_, holders)| {
            let together = |holder: &Holder| (holder.mode, wanted) == (Mode::Shared, Mode::Shared);
            !holders.iter().all(together)
        });
        (!held.is_empty()).then(|| held.swap_remove(in_the_way.unwrap_or(0)))
    }
}

/// How a wait for a lock of an outer run would end.
fn without_end(held: Mode, wanted: Mode) -> &'static str {
    match (held, wanted) {
        (Mode::Permit(_), Mode::Permit(_)) => "might never end",
        _ => "would never end",
    }
}

/// How long reading the holders of a busy lock may delay the error.
const LAST_LOOK: Duration = Duration::from_millis(500);
/// How long reading the health of the servers may delay the error about a missing quorum. A frozen
/// server takes a second.
const LAST_HEALTH: Duration = Duration::from_millis(1_500);
