use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::{Client, Effect, Error, ErrorKind, Guard, Mode};

use super::chance::Chance;
use super::grip::{Grip, Wanted};
use super::history::{Ending, Hold, Manner, Named, What};
use super::machine::Machine;
use super::plan::Plan;
use super::work::Work;

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

/// What a program wants next: a lock, or several as one.
struct Wish {
    /// Each lock, and what it is held as, in the order of their names.
    holds: Vec<(Hold, usize)>,
    mode: Mode,
    is_set: bool,
}

impl Wish {
    fn key(&self) -> usize {
        self.holds[0].1
    }

    fn each(&self, tell: impl Fn(Hold)) {
        self.holds.iter().for_each(|(hold, _)| tell(*hold));
    }
}

impl Program {
    pub(crate) async fn run(self) {
        while !self.work.is_over() {
            self.idle().await;
            let wish = self.wish();
            if let Some(grip) = self.take(&wish).await {
                self.hold(&wish, grip).await;
            }
        }
    }

    async fn idle(&self) {
        let now = self.machine.on_timeline(self.now());
        match self.work.plan.mix.pace.pause(now, &self.choice) {
            Some(span) => self.machine.sleep(span).await,
            None => self.pause(0, 800).await,
        }
    }

    fn wish(&self) -> Wish {
        let hold = self.work.next_hold();
        let mix = &self.work.plan.mix;
        let key = self.chance.below(mix.keys());
        let mode = mix.mode(key, &self.choice);
        let others = mix.others(key, &self.choice);
        let is_set = !others.is_empty();
        let mut holds = vec![(hold, key)];
        holds.extend(others.iter().map(|key| (self.work.next_hold(), *key)));
        holds.sort_unstable_by_key(|(_, key)| *key);
        Wish {
            holds,
            mode,
            is_set,
        }
    }

    async fn take(&self, wish: &Wish) -> Option<Grip> {
        // By its TTL a history knows which program an attempt belongs to.
        let ttl = *self.chance.pick(&Plan::TTLS);
        let ttl = self.work.plan.mix.pace.ttl().unwrap_or(ttl);
        let ttl = ttl - Duration::from_millis(self.number as u64);
        let delay = self.work.plan.mix.delay(ttl, Plan::MAX_TTL, &self.choice);
        let history = &self.work.history;
        let manner = self.manner();
        for (hold, key) in &wish.holds {
            history.add(What::Asked {
                hold: *hold,
                client: self.client_number,
                key: *key,
                mode: wish.mode,
                ttl: ttl + delay,
                delay,
                manner,
                set: wish.is_set.then_some(wish.holds[0].0),
            });
        }
        let names = wish.holds.iter().map(|(_, key)| key_name(*key));
        let wanted = if wish.is_set {
            // In whatever order they are named.
            let set = self.client.lock_all(names.rev());
            Wanted::All(set.ttl(ttl).mode(wish.mode).lock_delay(delay))
        } else {
            let lock = self.client.lock(key_name(wish.holds[0].1));
            Wanted::One(lock.ttl(ttl).mode(wish.mode).lock_delay(delay))
        };
        let asking = wanted.ask(manner, self.chance.millis(50, 2_500));
        let waits = matches!(manner, Manner::Patient | Manner::Barging);
        let cancels = self.chance.percent(if waits { 15 } else { 8 });
        let cancels = cancels || wish.is_set && self.work.plan.mix.aborts(&self.choice);
        let longest = if waits { 3_000 } else { 60 };
        let answer = tokio::select! {
            biased;
            answer = asking => answer,
            () = self.pause(0, longest), if cancels => {
                wish.each(|hold| history.add(What::Cancelled { hold }));
                return None;
            }
        };
        self.machine.awake().await;
        let denied = |named| wish.each(|hold| history.add(What::Denied { hold, named }));
        match answer {
            Ok(Some(grip)) => {
                for ((hold, _), guard) in wish.holds.iter().zip(grip.guards()) {
                    history.add(What::Granted {
                        hold: *hold,
                        owner: guard.owner(),
                        fence: guard.fence().get(),
                        until: self.until(guard),
                    });
                }
                return Some(grip);
            }
            Ok(None) => denied(Named::Busy),
            Err(error) => denied(named(&error)),
        }
        None
    }

    fn manner(&self) -> Manner {
        let plan = &self.work.plan;
        if let Some(manner) = plan.mix.pace.manner(&self.choice) {
            // Where no member may ever count again, nobody may have to wait until one does.
            let endless = matches!(manner, Manner::Patient | Manner::Barging);
            return if endless && !plan.is_live() {
                Manner::Limited
            } else {
                manner
            };
        }
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

    async fn hold(&self, wish: &Wish, grip: Grip) {
        tokio::select! {
            biased;
            () = self.watch(wish, &grip) => {}
            () = self.use_it(wish, &grip) => {}
        }
        let history = &self.work.history;
        let valid = self.answers(wish, &grip);
        // Of a lost set nobody follows those that are still held.
        if !valid && !wish.is_set && self.chance.percent(50) {
            for _ in 0..2 {
                self.pause(0, 1_500).await;
                self.answers(wish, &grip);
            }
        }
        let ends = |how| wish.each(|hold| history.add(What::Ended { hold, how }));
        if self.chance.percent(70) {
            ends(Ending::Released);
            let outcomes = grip.release().await;
            for ((hold, _), outcome) in wish.holds.iter().zip(outcomes) {
                let hold = *hold;
                history.add(What::Released { hold, outcome });
            }
        } else {
            ends(Ending::Dropped);
            drop(grip);
        }
    }

    /// Asks whether it is valid. What says so says it of all its guards.
    fn answers(&self, wish: &Wish, grip: &Grip) -> bool {
        let all = grip.is_valid();
        for ((hold, _), guard) in wish.holds.iter().zip(grip.guards()) {
            let valid = all || wish.is_set && guard.is_valid();
            let hold = *hold;
            self.work.history.add(What::Answered { hold, valid });
        }
        all
    }

    /// Writes down how deadlines move, until it is said that all is lost.
    async fn watch(&self, wish: &Wish, grip: &Grip) {
        let guards = || wish.holds.iter().zip(grip.guards());
        let moves = guards().map(|((hold, _), guard)| self.follow(*hold, guard));
        tokio::select! {
            biased;
            () = grip.lost() => {
                for ((hold, _), guard) in guards() {
                    // Others of a set may be held still.
                    if !wish.is_set || !guard.is_valid() {
                        self.work.history.add(What::Lost { hold: *hold });
                    }
                }
            }
            _ = join_all(moves) => {}
        }
    }

    async fn follow(&self, hold: Hold, guard: &Guard) {
        let (mut deadline, mut known) = (guard.deadline(), self.until(guard));
        loop {
            tokio::select! {
                biased;
                moved = guard.deadline_moved(deadline) => deadline = moved,
                () = self.machine.jumped() => {}
            }
            let until = self.until(guard);
            if until != known {
                known = until;
                self.work.history.add(What::Moved { hold, until });
            }
        }
    }

    /// Holds for up to three TTLs, asking and writing now and then.
    async fn use_it(&self, wish: &Wish, grip: &Grip) {
        let longest = *self.chance.pick(&[20, 20, 400, 400, 4_000, 12_000]);
        let pace = self.work.plan.mix.pace;
        let span = pace.span(&self.choice);
        let span = span.unwrap_or_else(|| self.chance.millis(0, longest));
        let mut end = self.machine.on_timeline(self.now()) + span;
        let mut mode = wish.mode;
        loop {
            let valid = self.answers(wish, grip);
            if valid && self.chance.percent(60) {
                // On its way for a moment, after its check.
                self.pause(0, 15).await;
                for ((hold, key), guard) in wish.holds.iter().zip(grip.guards()) {
                    let fence = guard.fence().get();
                    match mode {
                        Mode::Exclusive => self.work.write(*hold, *key, fence),
                        Mode::Shared | Mode::Permit(_) => self.work.read(*hold, *key, fence),
                    }
                }
            }
            self.pause(1, pace.step_max()).await;
            if mode == Mode::Exclusive && self.work.plan.mix.downgrades(wish.key(), &self.choice) {
                mode = Mode::Shared;
                self.downgrade(wish, grip).await;
                let more = pace.span(&self.choice).unwrap_or_default();
                end = end.max(self.machine.on_timeline(self.now()) + more);
            }
            if self.machine.on_timeline(self.now()) >= end || self.work.is_over() {
                return;
            }
        }
    }

    /// Goes on reading what it wrote. Of a set each lock is made shared.
    async fn downgrade(&self, wish: &Wish, grip: &Grip) {
        let history = &self.work.history;
        for ((hold, _), guard) in wish.holds.iter().zip(grip.guards()) {
            let hold = *hold;
            history.add(What::Downgraded { hold });
            let outcome = guard.downgrade().await;
            let outcome = outcome.as_ref().map_err(named);
            history.note(format!("h{hold}  is shared now: {outcome:?}"));
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
