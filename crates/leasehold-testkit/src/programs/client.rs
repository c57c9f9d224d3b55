//! One client of a program: carries out its operations, and logs what it does and sees.

#[cfg(unix)]
mod fork;
mod handles;
mod log;

use std::cell::RefCell;
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::clock::{BootInstant, Clock as _, SystemClock, within};
use leasehold::look::{BreakOptions, BreakTarget};
use leasehold::store::{Permits, Store};
use leasehold::{Client, Error, Guard, Lock, Mode, ReleaseOutcome};
use serde::{Deserialize, Serialize};

pub(crate) use log::Log;
use log::is_unexpected;

use super::history::{Event, HeldMode, HoldNumber, What};
use super::operation::{
    Acquire, ClientProgram, LEADER, LOCKS, LockIndex, Manner, Millis, Operation, PERMIT_COUNT,
    PERMITS, REQUEST, millis,
};

/// What a client needs to know of its program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Assignment {
    pub(crate) number: usize,
    pub(crate) program: ClientProgram,
    /// Before the names of the locks.
    pub(crate) prefix: String,
    pub(crate) shortest_ttl: Duration,
    /// The folder in which clients leave handles for each other.
    pub(crate) folder: PathBuf,
}

/// How long a client waits for its releases at its end.
const CLOSE_MAX: Duration = Duration::from_secs(10);

/// How often a client that works looks whether its guards are valid.
const LOOK: Duration = Duration::from_millis(20);

/// The time between the moments at which tasks meet.
const MEETING: Duration = Duration::from_millis(500);

/// The retention of results: longer than any program.
const RETENTION: Duration = Duration::from_secs(120);

/// Carries out the program of one client.
pub(crate) async fn perform(assignment: &Assignment, store: Arc<dyn Store>, log: Arc<Log>) {
    let client = RefCell::new(Client::new(Arc::clone(&store)));
    let tasks = assignment.program.tasks.iter().map(async |operations| {
        let mut task = Task {
            assignment,
            store: &store,
            client: &client,
            log: &log,
            guards: Vec::new(),
        };
        for operation in operations {
            task.perform(operation).await;
            task.look();
        }
        while !task.guards.is_empty() {
            task.release().await;
        }
    });
    join_all(tasks).await;
    let client = client.into_inner();
    if let Err(error) = client.close(CLOSE_MAX).await {
        log.failed("close", &error);
    }
    log.note(What::Finished);
}

/// What one task of the client holds.
struct Task<'a> {
    assignment: &'a Assignment,
    store: &'a Arc<dyn Store>,
    client: &'a RefCell<Client>,
    log: &'a Arc<Log>,
    guards: Vec<(HoldNumber, Guard)>,
}

impl Task<'_> {
    async fn perform(&mut self, operation: &Operation) {
        match operation {
            Operation::Acquire(acquire) => self.acquire(acquire).await,
            Operation::AcquireAll {
                manner,
                cancel_after,
            } => self.acquire_all(*manner, *cancel_after).await,
            Operation::Work(span) => self.work(*span).await,
            Operation::Meet => meet().await,
            Operation::Renew => self.renew().await,
            Operation::Downgrade => self.downgrade().await,
            Operation::Reenter => {
                if let Some((hold, guard)) = self.guards.last() {
                    self.guards.push((*hold, guard.reenter()));
                }
            }
            Operation::Release => self.release().await,
            Operation::Drop => {
                if let Some((hold, guard)) = self.guards.pop() {
                    self.ending(hold, "drops its guard");
                    drop(guard);
                }
            }
            Operation::CancelRelease => {
                if let Some((hold, guard)) = self.guards.pop() {
                    self.ending(hold, "cancels its release");
                    let mut releasing = pin!(guard.release());
                    let _ = futures_util::poll!(releasing.as_mut());
                }
            }
            Operation::Detach => self.detach(),
            Operation::Adopt => self.adopt().await,
            Operation::RenewHandle => self.renew_handle().await,
            Operation::ReleaseHandle => self.release_handle().await,
            Operation::Break { lock, at_once } => self.break_lock(*lock, *at_once).await,
            Operation::Once { work, cancel_after } => self.once(*work, *cancel_after).await,
            Operation::Lead { wait, work } => self.lead(*wait, *work).await,
            Operation::Observe => self.observe().await,
            #[cfg(unix)]
            Operation::Fork => self.fork(),
            #[cfg(not(unix))]
            Operation::Fork => panic!("this system cannot fork"),
            Operation::Restart { close } => self.restart(*close).await,
        }
    }

    fn client(&self) -> Client {
        self.client.borrow().clone()
    }

    fn note(&self, what: What) {
        self.log.note(what);
    }

    fn name(&self, lock: LockIndex) -> String {
        format!("{}{}", self.assignment.prefix, LOCKS[usize::from(lock)])
    }

    async fn acquire(&mut self, acquire: &Acquire) {
        let mode = match acquire {
            Acquire { lock: PERMITS, .. } => HeldMode::Permit,
            Acquire { shared: true, .. } => HeldMode::Shared,
            _ => HeldMode::Exclusive,
        };
        let lock = self
            .client()
            .lock(self.name(acquire.lock))
            .mode(match mode {
                HeldMode::Exclusive => Mode::Exclusive,
                HeldMode::Shared => Mode::Shared,
                HeldMode::Permit => {
                    Mode::Permit(Permits::new(PERMIT_COUNT).expect("a valid number"))
                }
            })
            .ttl(acquire.ttl.of(self.assignment.shortest_ttl));
        let hold = self.asked(acquire.lock, mode, acquire.manner, true);
        let asking = ask(lock, acquire.manner);
        match cancelled_after(acquire.cancel_after, asking).await {
            Some(Ok(Some(guard))) => self.granted(hold, guard),
            Some(Ok(None)) => self.refused(hold, None),
            Some(Err(error)) => self.refused(hold, Some(&error)),
            None => self.note(What::Cancelled { hold }),
        }
    }

    async fn acquire_all(&mut self, manner: Manner, cancel_after: Option<Millis>) {
        let holds = [0, 1].map(|lock| self.asked(lock, HeldMode::Exclusive, manner, false));
        let locks = self.client().lock_all([self.name(0), self.name(1)]);
        let locks = locks.ttl(self.assignment.shortest_ttl);
        let asking = async {
            match manner {
                Manner::Try => locks.try_acquire().await,
                Manner::Wait(wait) => locks.wait(millis(wait)).acquire().await.map(Some),
                Manner::Barge(wait) => {
                    let locks = locks.wait(millis(wait)).barging(true);
                    locks.acquire().await.map(Some)
                }
            }
        };
        let answer = cancelled_after(cancel_after, asking).await;
        match answer {
            Some(Ok(Some(guards))) => {
                for guard in guards.into_guards() {
                    let is_first = guard.key().as_str() == self.name(0);
                    self.granted(holds[usize::from(!is_first)], guard);
                }
            }
            Some(Ok(None)) => holds.iter().for_each(|hold| self.refused(*hold, None)),
            Some(Err(error)) => {
                holds
                    .iter()
                    .for_each(|hold| self.refused(*hold, Some(&error)));
            }
            None => holds
                .iter()
                .for_each(|hold| self.note(What::Cancelled { hold: *hold })),
        }
    }

    fn asked(
        &self,
        lock: LockIndex,
        mode: HeldMode,
        manner: Manner,
        is_queued: bool,
    ) -> HoldNumber {
        let hold = self.log.next_hold();
        self.note(What::Asked {
            hold,
            lock,
            mode,
            manner,
            is_queued: is_queued && matches!(manner, Manner::Wait(_)),
        });
        hold
    }

    fn refused(&self, hold: HoldNumber, error: Option<&Error>) {
        let is_unexpected = error.is_some_and(is_unexpected);
        let text = error.map_or_else(|| "busy".into(), Error::to_string);
        self.note(What::Refused {
            hold,
            is_unexpected,
            text,
        });
    }

    fn granted(&mut self, hold: HoldNumber, guard: Guard) {
        let fence = guard.fence().get();
        self.note(What::Granted { hold, fence });
        self.keep(hold, guard);
    }

    fn keep(&mut self, hold: HoldNumber, guard: Guard) {
        let (log, lost) = (Arc::clone(self.log), guard.lost());
        // It ends with the process.
        drop(leasehold::store::background::spawn(async move {
            let reason = lost.await.to_string();
            log.note(What::Lost { hold, reason });
        }));
        self.guards.push((hold, guard));
        self.look();
    }

    /// Looks whether the guards are valid.
    fn look(&self) {
        for (hold, guard) in &self.guards {
            let (hold, now) = (*hold, SystemClock.now());
            // The deadline moves on, but never back.
            let until = guard.deadline().map(super::history::nanos);
            if guard.is_valid() {
                let valid = What::Valid { hold, until };
                let event = Event::at(now, self.assignment.number, valid);
                self.log.write(&event);
            }
        }
    }

    async fn work(&self, span: Millis) {
        let end = SystemClock.now() + millis(span);
        while SystemClock.now() < end {
            SystemClock
                .sleep_until(end.min(SystemClock.now() + LOOK))
                .await;
            self.look();
        }
    }

    async fn renew(&self) {
        let Some((_, guard)) = self.guards.last() else {
            return;
        };
        if let Err(error) = guard.renew().await {
            self.log.failed("renew", &error);
        }
    }

    async fn downgrade(&self) {
        let Some((hold, guard)) = self.guards.last() else {
            return;
        };
        if guard.mode() != Mode::Exclusive {
            return;
        }
        self.note(What::Downgrading { hold: *hold });
        if let Err(error) = guard.downgrade().await {
            self.log.failed("downgrade", &error);
        }
    }

    fn ending(&self, hold: HoldNumber, how: &str) {
        self.look();
        let how = how.into();
        self.note(What::Ending { hold, how });
    }

    async fn release(&mut self) {
        let Some((hold, guard)) = self.guards.pop() else {
            return;
        };
        self.ending(hold, "releases");
        let (is_freed, text) = match guard.release().await {
            Ok(outcome) => (outcome == ReleaseOutcome::Released, format!("{outcome:?}")),
            Err(error) => (false, error.to_string()),
        };
        self.note(What::Released {
            hold,
            is_freed,
            text,
        });
    }

    async fn break_lock(&self, lock: LockIndex, at_once: bool) {
        let (client, name) = (self.client(), self.name(lock));
        let holders = match client.breakable(&name).await {
            Ok(holders) => holders,
            Err(error) => return self.log.failed("breakable", &error),
        };
        let Some(holder) = holders.first() else {
            return;
        };
        let Some(target) = holder
            .owner
            .map(BreakTarget::Owner)
            .or(holder.fence.map(BreakTarget::Fence))
        else {
            return;
        };
        let fence = holder.fence.map_or(0, leasehold::Fence::get);
        self.note(What::Breaking {
            lock,
            fence,
            at_once,
        });
        let how = match at_once {
            true => BreakOptions::at_once(),
            false => BreakOptions::at_its_end(),
        };
        let outcome = match client.break_lock(&name, target, how).await {
            Ok(outcome) => format!("{outcome:?}"),
            Err(error) => error.to_string(),
        };
        self.note(What::Broke { lock, outcome });
    }

    async fn once(&self, work: Millis, cancel_after: Option<Millis>) {
        let once = self.client().once(self.name(REQUEST)).retention(RETENTION);
        let once = once.ttl(self.assignment.shortest_ttl).wait(millis(1_500));
        let own = format!("{}-{}", self.assignment.number, self.log.next_hold());
        let bytes = &own;
        let running = once.run(async |_| {
            SystemClock
                .sleep_until(SystemClock.now() + millis(work))
                .await;
            Ok::<_, Error>(bytes.as_bytes())
        });
        match cancelled_after(cancel_after, running).await {
            Some(Ok(Ok(result))) => {
                let bytes = String::from_utf8_lossy(&result.bytes).into_owned();
                let ran = bytes == own;
                self.note(What::Result { bytes, ran });
            }
            Some(Err(error) | Ok(Err(error))) => self.log.failed("once", &error),
            None => {}
        }
    }

    async fn lead(&mut self, wait: Millis, work: Millis) {
        let election = self.client().election(self.name(LEADER));
        let election = election
            .ttl(self.assignment.shortest_ttl)
            .wait(millis(wait));
        let hold = self.asked(LEADER, HeldMode::Exclusive, Manner::Wait(wait), true);
        match election.campaign().await {
            Ok(leadership) => {
                let fence = leadership.fence().get();
                self.note(What::Granted { hold, fence });
                if let Err(error) = leadership.publish("a second value").await {
                    self.log.failed("publish", &error);
                }
                self.keep(hold, leadership.into_guard());
                self.work(work).await;
                self.release().await;
            }
            Err(error) => self.refused(hold, Some(&error)),
        }
    }

    async fn observe(&self) {
        let look = self.log.next_hold();
        self.note(What::Looking { look });
        match self.client().election(self.name(LEADER)).leader().await {
            Ok(leader) => {
                let fence = leader.map(|leader| leader.fence.get());
                self.note(What::Leader { look, fence });
            }
            Err(error) => self.log.failed("leader", &error),
        }
    }

    async fn restart(&self, close: bool) {
        let old = self.client.replace(Client::new(Arc::clone(self.store)));
        self.note(What::Restarted);
        if close && let Err(error) = old.close(CLOSE_MAX).await {
            self.log.failed("close", &error);
        }
    }
}

async fn ask(lock: Lock, manner: Manner) -> Result<Option<Guard>, Error> {
    match manner {
        Manner::Try => lock.try_acquire().await,
        Manner::Wait(wait) => lock.wait(millis(wait)).acquire().await.map(Some),
        Manner::Barge(wait) => {
            let lock = lock.wait(millis(wait)).barging(true);
            lock.acquire().await.map(Some)
        }
    }
}

/// Polls the future, but drops it after this time.
async fn cancelled_after<T>(span: Option<Millis>, future: impl Future<Output = T>) -> Option<T> {
    match span {
        Some(span) => within(&SystemClock, SystemClock.now() + millis(span), future).await,
        None => Some(future.await),
    }
}

/// Waits for the next moment at which tasks meet. All processes read the same clock.
async fn meet() {
    let moment = MEETING.as_nanos() as u64;
    let next = SystemClock.now().as_nanos() / moment + 1;
    let at = BootInstant::from_nanos(next * moment);
    SystemClock.sleep_until(at).await;
}
