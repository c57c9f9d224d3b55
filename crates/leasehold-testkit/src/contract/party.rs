use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::{
    Attempt, Busy, Claim, ClientInfo, Departure, Heard, Hint, Key, Member, Owner, RESERVATION,
    Release, Ticket, Turn, Word,
};

use super::scene::{LONG, PATIENCE, Scene, inspection, now};
use crate::harness::Harness;

/// A client that reaches the member in a way of its own, and what it hears there. Dropped, it hears
/// nothing any more.
#[derive(Debug)]
pub(super) struct Party<'a> {
    pub(super) scene: &'a Scene,
    pub(super) member: Arc<dyn Member>,
    pub(super) info: Arc<ClientInfo>,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl<'a> Party<'a> {
    pub(super) fn new(scene: &'a Scene) -> Self {
        Self::at(scene, &*scene.harness)
    }

    pub(super) fn at(scene: &'a Scene, harness: &dyn Harness) -> Self {
        let (member, info) = (harness.member(), scene.client());
        let (id, heard) = (info.id, Arc::new(Mutex::new(Vec::new())));
        let record = Arc::downgrade(&heard);
        member.listen(Box::new(move |what| {
            let concerns = match &what {
                Heard::Hint(hint) => hint.waiter.client() == id,
                Heard::Deaf => true,
            };
            let Some(record) = record.upgrade().filter(|_| concerns) else {
                return false;
            };
            record
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(what);
            true
        }));
        Self {
            scene,
            member,
            info,
            heard,
        }
    }

    /// Wants the lock since the moment with this number.
    pub(super) fn wants(&'a self, key: &Key, since: u64) -> Wish<'a> {
        let claim = self.scene.claim_of(&self.info, key, LONG);
        let waiter = self.scene.owner_of(&self.info);
        let since = WallTime::from_micros(SOME_TIME + since);
        Wish {
            party: self,
            claim,
            ticket: Ticket { since, waiter },
        }
    }

    pub(super) fn heard(&self) -> Vec<Heard> {
        let heard = self.heard.lock();
        heard.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Some day in 2026.
const SOME_TIME: u64 = 1_795_000_000_000_000;

/// One wait of a client, and its attempt.
#[derive(Debug)]
pub(super) struct Wish<'a> {
    pub(super) party: &'a Party<'a>,
    pub(super) claim: Claim,
    pub(super) ticket: Ticket,
}

impl Wish<'_> {
    pub(super) fn shared(mut self) -> Self {
        self.claim.mode = leasehold::Mode::Shared;
        self
    }

    pub(super) async fn ask(&self) -> Attempt {
        self.attempt(Turn::Queued(self.ticket)).await
    }

    pub(super) async fn barge(&self) -> Attempt {
        self.attempt(Turn::Barging).await
    }

    async fn attempt(&self, turn: Turn) -> Attempt {
        let answer = self.party.member.acquire_in_turn(&self.claim, &turn).await;
        answer.expect("an answer")
    }

    /// An attempt that wants no place in the queue.
    pub(super) async fn try_once(&self) -> Attempt {
        let answer = self.party.member.acquire(&self.claim).await;
        answer.expect("an answer")
    }

    pub(super) async fn is_granted(&self) {
        let answer = self.ask().await;
        assert!(is_granted(&answer), "{answer:?}");
    }

    pub(super) async fn is_refused(&self) -> Busy {
        busy(self.ask().await)
    }

    pub(super) async fn depart(&self, departure: Departure) -> Release {
        let answer = self.party.member.depart(&self.claim, &departure).await;
        answer.expect("an answer")
    }

    /// Frees what it holds, which is handed over.
    pub(super) async fn hands_over(&self) {
        assert_eq!(self.depart(Departure::HandOver).await, Release::Released);
    }

    pub(super) async fn leaves(&self) {
        let key = &self.claim.key;
        let left = self.party.member.leave_queue(key, self.ticket.waiter);
        left.await.expect("an answer");
    }

    /// What it was told so far.
    pub(super) fn words(&self) -> Vec<Word> {
        self.hints().iter().map(|hint| hint.word).collect()
    }

    /// Waits until it was told to show itself.
    pub(super) async fn is_wanted(&self) {
        let wanted = async || self.words().contains(&AT_ONCE);
        until(self.party.scene, "it is told to ask at once", wanted).await;
    }

    pub(super) fn hints(&self) -> Vec<Hint> {
        let ours = |heard| match heard {
            Heard::Hint(hint) => Some(hint)
                .filter(|hint| hint.key == self.claim.key && hint.waiter == self.ticket.waiter),
            Heard::Deaf => None,
        };
        self.party.heard().into_iter().filter_map(ours).collect()
    }

    /// Waits until it was told something, and for nothing else.
    pub(super) async fn is_told(&self, word: Word) {
        let what = format!("{word:?} for {}", self.claim.key);
        until(self.party.scene, &what, async || !self.words().is_empty()).await;
        assert_eq!(self.words(), [word], "{}", self.claim.key);
    }
}

/// Waits until `condition` holds.
pub(super) async fn until(scene: &Scene, what: &str, condition: impl AsyncFn() -> bool) {
    let began = now();
    while !condition().await {
        assert!(
            began.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        scene.pause().await;
    }
}

/// What `run` finds with a new key, in a time in which no reservation can have lapsed: where the
/// machine was too slow for that, it runs again.
pub(super) async fn in_time<T>(scene: &Scene, run: impl AsyncFn(Key) -> T) -> T {
    let began = now();
    while began.elapsed() < PATIENCE {
        let tried = now();
        let found = run(scene.key()).await;
        if tried.elapsed() < RESERVATION.mul_f64(0.8) {
            return found;
        }
    }
    panic!("never within {RESERVATION:?}, for {PATIENCE:?}")
}

/// Who waits, in order.
pub(super) async fn line(party: &Party<'_>, key: &Key) -> Vec<Owner> {
    let waiters = inspection(&party.member)
        .waiters(key)
        .await
        .expect("an answer");
    waiters.iter().map(|waiter| waiter.ticket.waiter).collect()
}

pub(super) fn waiters<const N: usize>(wishes: [&Wish<'_>; N]) -> [Owner; N] {
    wishes.map(|wish| wish.ticket.waiter)
}

pub(super) fn is_granted(answer: &Attempt) -> bool {
    matches!(answer, Attempt::Granted(_))
}

pub(super) fn busy(answer: Attempt) -> Busy {
    match answer {
        Attempt::Busy(busy) => busy,
        Attempt::Granted(grant) => panic!("should be busy, and is granted with {}", grant.fence),
    }
}

pub(super) const SOON: Word = Word::Soon {
    remaining: RESERVATION,
};

/// What one is told that keeps others out of what they could share.
pub(super) const AT_ONCE: Word = Word::Soon {
    remaining: Duration::ZERO,
};
