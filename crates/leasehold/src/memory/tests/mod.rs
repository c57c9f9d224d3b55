//! The rules of the queue, one by one, and in random order.

mod departures;
mod permits;
mod random;
mod turns;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::queue::Step;
use super::slot::Slot;
use crate::attempt::{Attempt, Busy, Release};
use crate::claim::{Claim, Mode};
use crate::clock::{BootInstant, WallTime};
use crate::error::Error;
use crate::holder::ClientInfo;
use crate::key::Key;
use crate::member::RESERVATION;
use crate::owner::Owner;
use crate::queue::{Departure, Hint, Ticket, Turn, Word};

const TTL: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_millis(100);

/// One who waits since its own number, for the client of the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Person {
    since: u64,
    client: u64,
    mode: Mode,
}

/// A writer with a client of its own.
fn writer(since: u64) -> Person {
    Person {
        since,
        client: since,
        mode: Mode::Exclusive,
    }
}

/// A reader with a client of its own.
fn reader(since: u64) -> Person {
    Person {
        mode: Mode::Shared,
        ..writer(since)
    }
}

impl Person {
    fn of_client(self, client: u64) -> Self {
        Self { client, ..self }
    }

    fn ticket(self) -> Ticket {
        Ticket {
            since: WallTime::from_micros(self.since),
            waiter: self.identity(0),
        }
    }

    fn claim(self) -> Claim {
        let owner = self.identity(1);
        let start = WallTime::from_micros(0);
        let info = ClientInfo::new(owner.client(), "host".into(), 1, "test".into(), start);
        Claim::new(key(), owner, TTL, start, Arc::new(info)).with_mode(self.mode)
    }

    fn identity(self, kind: u64) -> Owner {
        let text = format!("{:016x}.{kind:016x}{:016x}", self.client, self.since);
        text.parse().unwrap()
    }
}

fn key() -> Key {
    Key::new("key").unwrap()
}

/// A key, and who is asked and told about it.
#[derive(Debug)]
struct Bench {
    slot: Slot,
    now: BootInstant,
    /// Clients that hear nothing.
    deaf: BTreeSet<u64>,
    /// What was heard since it was last asked, by `since` of the waiters.
    heard: Vec<(u64, Word)>,
    /// Which permits the waiters were told of.
    offered: Vec<(u64, u32)>,
}

impl Bench {
    fn new() -> Self {
        Self {
            slot: Slot::default(),
            now: BootInstant::from_nanos(0),
            deaf: BTreeSet::new(),
            heard: Vec::new(),
            offered: Vec::new(),
        }
    }

    /// A lock that `holder` holds, while the others wait for it.
    fn held(holder: Person, waiting: &[Person]) -> Self {
        let mut bench = Self::new();
        bench.gets(holder);
        for person in waiting {
            bench.waits(*person);
        }
        bench.heard();
        bench
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    fn step<T>(&mut self, run: impl FnOnce(&mut Slot, &mut Step<'_>) -> T) -> T {
        let (deaf, heard, offered) = (&self.deaf, &mut self.heard, &mut self.offered);
        let mut tell = |hint: Hint| {
            let text = hint.waiter.to_string();
            let (client, since) = (&text[..16], &text[33..]);
            let number = |hex| u64::from_str_radix(hex, 16).unwrap();
            let hears = !deaf.contains(&number(client));
            if hears {
                heard.push((number(since), hint.word));
                offered.extend(hint.slot.map(|slot| (number(since), slot.get())));
            }
            hears
        };
        let mut step = Step {
            key: &key(),
            now: self.now,
            tell: &mut tell,
        };
        self.slot.expire(step.now);
        run(&mut self.slot, &mut step)
    }

    fn attempt(&mut self, person: Person) -> Result<Attempt, Error> {
        let turn = Turn::Queued(person.ticket());
        self.step(|slot, step| slot.acquire_in_turn(&person.claim(), turn, step))
    }

    fn overtake(&mut self, person: Person) -> Result<Attempt, Error> {
        self.step(|slot, step| slot.acquire_in_turn(&person.claim(), Turn::Barging, step))
    }

    fn try_plainly(&mut self, person: Person) -> Result<Attempt, Error> {
        self.step(|slot, step| slot.acquire(&person.claim(), step))
    }

    fn ask(&mut self, person: Person) -> Attempt {
        self.attempt(person).unwrap()
    }

    fn barge(&mut self, person: Person) -> Attempt {
        self.overtake(person).unwrap()
    }

    /// An attempt of one that has no place in the queue and wants none.
    fn try_once(&mut self, person: Person) -> Attempt {
        self.try_plainly(person).unwrap()
    }

    fn depart(&mut self, person: Person, departure: &Departure) -> Release {
        self.step(|slot, step| slot.depart(&person.claim(), departure, step))
    }

    fn frees(&mut self, person: Person) {
        let freed = self.depart(person, &Departure::HandOver);
        assert_eq!(freed, Release::Released, "{person:?}");
    }

    fn leaves(&mut self, person: Person) {
        self.step(|slot, step| slot.leave_queue(person.ticket().waiter, step));
    }

    fn gets(&mut self, person: Person) {
        let answer = self.ask(person);
        assert!(is_granted(&answer), "{person:?}: {answer:?}");
    }

    fn waits(&mut self, person: Person) -> Busy {
        busy(self.ask(person))
    }

    /// All that was heard since it was asked before.
    fn heard(&mut self) -> Vec<(u64, Word)> {
        std::mem::take(&mut self.heard)
    }

    /// Who waits, the one with the reservation first.
    fn line(&mut self) -> Vec<u64> {
        let waiters = self.step(|slot, _| slot.queue.waiters());
        let since = waiters.iter().map(|waiter| waiter.ticket.since.as_micros());
        since.collect()
    }

    fn reserved(&mut self) -> bool {
        self.step(|slot, _| slot.queue.is_reserved())
    }
}

fn is_granted(answer: &Attempt) -> bool {
    matches!(answer, Attempt::Granted(_))
}

fn busy(answer: Attempt) -> Busy {
    match answer {
        Attempt::Busy(busy) => busy,
        Attempt::Granted(grant) => panic!("granted with {}", grant.fence),
    }
}

fn turn(person: Person) -> (u64, Word) {
    (person.since, Word::YourTurn)
}

fn soon(person: Person, remaining: Duration) -> (u64, Word) {
    (person.since, Word::Soon { remaining })
}

/// Is to show itself.
fn at_once(person: Person) -> (u64, Word) {
    soon(person, Duration::ZERO)
}
