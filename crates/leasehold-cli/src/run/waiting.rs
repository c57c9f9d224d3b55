use std::future::pending;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::{
    Client, Error, ErrorKind, GuardSet, Holder, LockSet, MemberId, Mode, Order, Owner, Waiter,
};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::holder_text;
use crate::message::Message;
use crate::output::Output;
use crate::run::around::{self, Around};
use crate::run::hold::Hold;
use crate::run::nesting::{LockAround, Nesting};
use crate::run::signals::Signals;
use crate::shortage::Shortage;
use crate::waiter_text;
use crate::wish::Wish;

/// The wish for locks, and everything that is said while it is not granted.
pub(crate) struct Request<'a> {
    pub(crate) client: &'a Client,
    pub(crate) wish: &'a Wish,
    pub(crate) nesting: &'a Nesting,
    pub(crate) output: &'a Output,
    /// Whether the command could be run under a lock that is held around it: with --nested.
    pub(crate) lends: bool,
}

/// Why a wait goes on, as far as it is worth saying again when it changes.
#[derive(PartialEq, Eq)]
enum Why {
    HeldBy {
        owners: Vec<Option<Owner>>,
        place: Option<u64>,
    },
    TooFew(Vec<MemberId>),
}

impl Why {
    fn of(holders: &[Holder], place: Option<u64>, shortage: Option<&Shortage>) -> Option<Self> {
        match shortage {
            Some(shortage) => {
                let out = shortage.failures.iter().map(|failure| failure.id.clone());
                Some(Self::TooFew(out.collect()))
            }
            None if holders.is_empty() => None,
            None => {
                let owners = holders.iter().map(|holder| holder.owner).collect();
                Some(Self::HeldBy { owners, place })
            }
        }
    }
}

/// How a wait ended, unless it failed.
pub(crate) enum Wait {
    Held(GuardSet),
    /// This signal asked the program to end. Nothing is held, nothing queued.
    Signalled(i32),
}

impl Request<'_> {
    pub(crate) async fn acquire(&self, signals: &Signals) -> Result<Wait, Failure> {
        let began = SystemClock.now();
        let outcome = tokio::select! {
            biased;
            signal = signals.ending(self.output) => {
                let signal = signal.map_err(|error| Failure::of("cannot read signals", &error));
                signal.map(Wait::Signalled)
            }
            guards = self.hold() => guards.map(Wait::Held),
        };
        self.output.clear_status();
        if let Ok(Wait::Held(guards)) = &outcome {
            self.output.say(&Message::Acquired {
                lock: &self.wish.name,
                guards,
                store: &self.client.describe(),
                after: SystemClock.now().since(began),
            });
        }
        outcome
    }

    /// Stands under the lock that a run around this one holds.
    pub(super) async fn enter(&self, lock: LockAround) -> Result<Hold, Failure> {
        let (client, wanted) = (self.client.clone(), self.wish.mode());
        let around = Around::enter(client, lock, wanted, self.wish.ttl / 3).await?;
        self.output.say(&Message::Nested {
            lock: &self.wish.name,
            fence: around.lock().fence(),
            store: &self.client.describe(),
        });
        Ok(Hold::Around(around))
    }

    async fn hold(&self) -> Result<GuardSet, Failure> {
        let locks = self.locks_beside_those_around().await?;
        let granted = if self.wish.no_wait {
            match locks.try_acquire().await {
                Ok(guards) => guards,
                Err(error) => return Err(self.failed(error).await),
            }
        } else {
            tokio::select! {
                biased;
                granted = locks.acquire() => match granted {
                    Ok(guards) => Some(guards),
                    Err(error) if error.is_busy() => None,
                    Err(error) => return Err(self.failed(error).await),
                },
                () = self.report_progress() => None,
            }
        };
        match granted {
            Some(guards) => Ok(guards),
            None => Err(self.busy().await),
        }
    }

    /// The locks, which wait for nothing that lasts as long as this run. One that is held around the
    /// run is freed only after it: waiting would never end. One that is shared around it goes to
    /// those who wait only then: this run goes ahead of them.
    async fn locks_beside_those_around(&self) -> Result<LockSet, Failure> {
        let mut is_shared = false;
        if self.nesting.is_nested() {
            for name in self.wish.names() {
                // A store that does not answer is reported by the attempt that follows.
                let holders = self.client.holders(name).await.unwrap_or_default();
                if let Some(holder) = self.nesting.deadlock(&holders, self.wish.mode()) {
                    return Err(Failure::usage(format!(
                        "lock {name:?} is held around this command, by {}: waiting for it {}{}",
                        holder_text::phrase(holder),
                        without_end(holder.mode, self.wish.mode()),
                        self.way_out(holder.mode),
                    )));
                }
                is_shared |= self.nesting.shares(&holders);
            }
        }
        Ok(self.wish.locks(self.client).barging(is_shared))
    }

    /// The option that would let the command run under a lock held around it, where one would.
    fn way_out(&self, held: Mode) -> &'static str {
        match around::refusal(held, self.wish.mode()) {
            None if self.wish.also.is_empty() && self.lends => {
                " (--nested runs the command under its lease)"
            }
            _ => "",
        }
    }

    /// The lock that is waited for, and who holds it: the first one that this run does not hold
    /// itself. `None` if it holds all.
    async fn missing(&self) -> Option<(&str, Vec<Holder>)> {
        for name in self.wish.names() {
            let holders = self.client.holders(name).await.unwrap_or_default();
            let is_ours = |owner: Owner| owner.client() == self.client.id();
            if !holders
                .iter()
                .any(|holder| holder.owner.is_some_and(is_ours))
            {
                return Some((name, holders));
            }
        }
        None
    }

    /// Says who holds the lock and how many are served before this run, or why nobody can hold it: on
    /// a terminal again and again, elsewhere once, for programs whenever it changes. Never ends.
    async fn report_progress(&self) {
        let began = SystemClock.now();
        let terminal = self.output.has_terminal();
        let mut said: Option<Why> = None;
        SystemClock.sleep_until(began + FIRST_REPORT).await;
        loop {
            // Granted while the question was under way: the answer to the wish comes next. Or what is
            // seen is an earlier lease of this run, which was lost and has not ended yet.
            let Some((name, holders)) = self.missing().await else {
                SystemClock
                    .sleep_until(SystemClock.now() + NEXT_REPORT)
                    .await;
                continue;
            };
            let waiters = self.waiters(name).await;
            let place = waiter_text::place_of(self.client.id(), &waiters);
            let shortage = match holders.is_empty() && place.is_none() {
                true => self.shortage().await,
                false => None,
            };
            let message = Message::Waiting {
                lock: name,
                holders: &holders,
                place,
                shortage: shortage.as_ref(),
                so_far: SystemClock.now().since(began),
            };
            let why = Why::of(&holders, place, shortage.as_ref());
            if terminal {
                self.output.show_status(&message);
            } else if why.is_some() && said != why {
                self.output.say(&message);
                if !self.wish.json && shortage.is_none() {
                    return pending().await;
                }
                said = why;
            }
            let count = u32::try_from(waiters.len()).unwrap_or(u32::MAX);
            let pause = NEXT_REPORT.max(PER_WAITER.saturating_mul(count));
            SystemClock.sleep_until(SystemClock.now() + pause).await;
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
                let names = self.wish.names();
                let names: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
                let names = names.join(" or ");
                format!("lock {names} was held by somebody else a moment ago")
            }
        };
        let waited = match self.wish.wait {
            Some(wait) if !self.wish.no_wait => {
                format!(" after waiting {}", humantime::format_duration(wait))
            }
            _ => String::new(),
        };
        let code = ExitCode::of(self.wish.busy_code);
        Failure::new(code, format!("{held}{waited}"))
    }

    /// Why the lock could not be asked for, and what can be done about it.
    async fn failed(&self, error: Error) -> Failure {
        let code = ExitCode::of_error(&error);
        let shortage = match error.kind() {
            ErrorKind::NoQuorum => {
                let limit = SystemClock.now() + LAST_HEALTH;
                within(&SystemClock, limit, self.shortage()).await.flatten()
            }
            _ => None,
        };
        match shortage.and_then(|shortage| shortage.advice()) {
            Some(advice) => Failure::new(code, format!("{error}; {advice}")),
            None => error.into(),
        }
    }

    async fn shortage(&self) -> Option<Shortage> {
        let health = self.client.health().await;
        Shortage::of(&health.unwrap_or_default())
    }

    /// The first of the locks that others hold so that it cannot be had, as far as can be seen.
    async fn held_by_others(&self) -> Option<(&str, Vec<Holder>)> {
        let mut held = Vec::new();
        for name in self.wish.names() {
            let holders = self.client.holders(name).await.unwrap_or_default();
            if !holders.is_empty() {
                held.push((name, holders));
            }
        }
        let wanted = self.wish.mode();
        // One that could be shared may still be refused, to let somebody in who waits for it.
        let in_the_way = held.iter().position(|(_, holders)| {
            let together = |holder: &Holder| (holder.mode, wanted) == (Mode::Shared, Mode::Shared);
            !holders.iter().all(together)
        });
        (!held.is_empty()).then(|| held.swap_remove(in_the_way.unwrap_or(0)))
    }

    async fn waiters(&self, name: &str) -> Vec<Waiter> {
        if self.client.guarantees().order == Order::Unordered {
            return Vec::new();
        }
        let waiters = self.client.waiters(name).await;
        waiters.unwrap_or_default()
    }
}

/// What waiting for a lock that is held around would be.
fn without_end(held: Mode, wanted: Mode) -> &'static str {
    match (held, wanted) {
        (Mode::Permit(_), Mode::Permit(_)) => "might never end",
        _ => "would never end",
    }
}

/// Short waits pass unnoticed.
const FIRST_REPORT: Duration = Duration::from_millis(300);
const NEXT_REPORT: Duration = Duration::from_secs(1);
/// Whoever waits reads the names of all who do: the longer the queue, the more seldom.
const PER_WAITER: Duration = Duration::from_millis(100);
/// How long the question who holds a busy lock may delay the answer that it is busy.
const LAST_LOOK: Duration = Duration::from_millis(500);
/// How long the question why too few members count may delay the answer that there is no quorum:
/// one that is frozen takes a second to be given up.
const LAST_HEALTH: Duration = Duration::from_millis(1_500);
