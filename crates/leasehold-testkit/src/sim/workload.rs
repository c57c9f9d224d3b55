use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::{Client, Effect, Ended, Error, ErrorKind, Guard, Lock, Mode};

use super::chance::Chance;
use super::history::{Ending, Freed, History, Hold, Manner, Named, What};
use super::machine::Machine;
use super::plan::Plan;
use crate::virtual_time::lock;

/// What the programs of all clients share.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) history: History,
    pub(crate) plan: Plan,
    over: AtomicBool,
    holds: AtomicUsize,
    /// A record per key that takes no write with a fence below the greatest so far.
    records: Mutex<Vec<u64>>,
}

/// A program that takes locks: at random, for a random time, and sometimes carelessly.
pub(crate) struct Program {
    pub(crate) client_number: usize,
    /// Which of the client's programs it is.
    pub(crate) number: usize,
    pub(crate) machine: Machine,
    pub(crate) client: Client,
    pub(crate) chance: Chance,
    /// Of what a world of mutexes alone has not to choose.
    pub(crate) choice: Chance,
    pub(crate) work: Arc<Work>,
}

impl Work {
    pub(crate) fn new(history: History, plan: Plan) -> Self {
        Self {
            history,
            over: AtomicBool::new(false),
            holds: AtomicUsize::new(0),
            records: Mutex::new(vec![0; plan.keys]),
            plan,
        }
    }

    /// Lets every program end as soon as it has given back what it holds.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn next_hold(&self) -> Hold {
        self.holds.fetch_add(1, Ordering::Relaxed)
    }

    fn read(&self, hold: Hold, key: usize, fence: u64) {
        let accepted = fence >= lock(&self.records)[key];
        self.history.add(What::Read {
            hold,
            key,
            fence,
            accepted,
        });
    }

    fn write(&self, hold: Hold, key: usize, fence: u64) {
        let accepted = {
            let mut records = lock(&self.records);
            let accepted = fence >= records[key];
            records[key] = records[key].max(fence);
            accepted
        };
        self.history.add(What::Wrote {
            hold,
            key,
            fence,
            accepted,
        });
    }
}

impl Program {
    pub(crate) async fn run(self) {
        while !self.work.is_over() {
            self.pause(0, 800).await;
            let hold = self.work.next_hold();
            let key = self.chance.below(self.work.plan.keys);
            let mode = self.work.plan.mix.mode(key, &self.choice);
            if let Some(guard) = self.take(hold, key, mode).await {
                self.hold(hold, key, mode, guard).await;
            }
        }
    }

    async fn take(&self, hold: Hold, key: usize, mode: Mode) -> Option<Guard> {
        // By its TTL a history knows which program an attempt belongs to.
        let ttl = *self.chance.pick(&Plan::TTLS) - Duration::from_millis(self.number as u64);
        let client = self.client_number;
        let history = &self.work.history;
        let manner = self.manner();
        history.add(What::Asked {
            hold,
            client,
            key,
            mode,
            ttl,
            manner,
        });
        let asked = self.client.lock(key_name(key)).ttl(ttl).mode(mode);
        let asking = ask(asked, manner, self.chance.millis(50, 2_500));
        let waits = matches!(manner, Manner::Patient | Manner::Barging);
        let cancels = self.chance.percent(if waits { 15 } else { 8 });
        let longest = if waits { 3_000 } else { 60 };
        let answer = tokio::select! {
            biased;
            answer = asking => answer,
            () = self.pause(0, longest), if cancels => {
                history.add(What::Cancelled { hold });
                return None;
            }
        };
        self.machine.awake().await;
        match answer {
            Ok(Some(guard)) => {
                history.add(What::Granted {
                    hold,
                    owner: guard.owner(),
                    fence: guard.fence().get(),
                    until: self.until(&guard),
                });
                Some(guard)
            }
            Ok(None) => {
                history.add(What::Denied {
                    hold,
                    named: Named::Busy,
                });
                None
            }
            Err(error) => {
                history.add(What::Denied {
                    hold,
                    named: named(&error),
                });
                None
            }
        }
    }

    fn manner(&self) -> Manner {
        let plan = &self.work.plan;
        if !plan.waits || self.chance.percent(30) {
            Manner::Once
        } else if plan.barges && self.chance.percent(10) {
            Manner::Barging
        } else if plan.patient && self.chance.percent(70) {
            Manner::Patient
        } else {
            Manner::Limited
        }
    }

    async fn hold(&self, hold: Hold, key: usize, mode: Mode, guard: Guard) {
        tokio::select! {
            biased;
            () = self.watch(hold, &guard) => {}
            () = self.use_it(hold, key, mode, &guard) => {}
        }
        let history = &self.work.history;
        let valid = guard.is_valid();
        history.add(What::Answered { hold, valid });
        if !valid && self.chance.percent(50) {
            for _ in 0..2 {
                self.pause(0, 1_500).await;
                history.add(What::Answered {
                    hold,
                    valid: guard.is_valid(),
                });
            }
        }
        if self.chance.percent(70) {
            history.add(What::Ended {
                hold,
                how: Ending::Released,
            });
            let outcome = match guard.release().await {
                Ok(Ended::Released | Ended::StillShared) => Freed::Released,
                Ok(_) => Freed::WasLost,
                Err(_) => Freed::Unknown,
            };
            history.add(What::Released { hold, outcome });
        } else {
            history.add(What::Ended {
                hold,
                how: Ending::Dropped,
            });
            drop(guard);
        }
    }

    /// Writes down how the deadline moves, until the guard says that it is lost.
    async fn watch(&self, hold: Hold, guard: &Guard) {
        let lost = guard.lost_token();
        let history = &self.work.history;
        let (mut deadline, mut known) = (guard.deadline(), self.until(guard));
        loop {
            tokio::select! {
                biased;
                () = lost.cancelled() => {
                    history.add(What::Lost { hold });
                    return;
                }
                moved = guard.deadline_moved(deadline) => deadline = moved,
                () = self.machine.jumped() => {}
            }
            let until = self.until(guard);
            if until != known {
                known = until;
                history.add(What::Moved { hold, until });
            }
        }
    }

    /// Holds for up to three TTLs, asking and writing now and then.
    async fn use_it(&self, hold: Hold, key: usize, mode: Mode, guard: &Guard) {
        let history = &self.work.history;
        let longest = *self.chance.pick(&[20, 20, 400, 400, 4_000, 12_000]);
        let end = self.machine.on_timeline(self.now()) + self.chance.millis(0, longest);
        loop {
            let valid = guard.is_valid();
            history.add(What::Answered { hold, valid });
            if valid && self.chance.percent(60) {
                // On its way for a moment, after its check.
                self.pause(0, 15).await;
                let fence = guard.fence().get();
                match mode {
                    Mode::Exclusive => self.work.write(hold, key, fence),
                    Mode::Shared | Mode::Permit(_) => self.work.read(hold, key, fence),
                }
            }
            self.pause(1, 700).await;
            if self.machine.on_timeline(self.now()) >= end || self.work.is_over() {
                return;
            }
        }
    }

    fn now(&self) -> leasehold::clock::BootInstant {
        use leasehold::clock::Clock;
        self.machine.now()
    }

    fn until(&self, guard: &Guard) -> Duration {
        let deadline = guard.deadline().expect("leases of a quorum end");
        self.machine.on_timeline(deadline)
    }

    async fn pause(&self, least: u64, most: u64) {
        self.machine.sleep(self.chance.millis(least, most)).await;
    }
}

async fn ask(lock: Lock, manner: Manner, limit: Duration) -> Result<Option<Guard>, Error> {
    let lock = match manner {
        Manner::Once => return lock.try_acquire().await,
        Manner::Limited => lock.wait(limit),
        Manner::Patient => lock,
        Manner::Barging => lock.barging(true),
    };
    lock.acquire().await.map(Some)
}

fn named(error: &Error) -> Named {
    match (error.kind(), error.effect()) {
        (ErrorKind::Busy, Effect::None) => Named::Busy,
        (kind, Effect::None) => Named::NoEffect(kind),
        (kind, Effect::Unknown) => Named::Unknown(kind),
    }
}

pub(crate) fn key_name(key: usize) -> String {
    format!("key-{key}")
}
