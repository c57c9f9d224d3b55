use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use foldhash::fast::FixedState;
use leasehold::{Key, Mode};
use leasehold_fakeredis::{ConnectionId, FakeRedis, Reply};
use leasehold_redis::codec::{LockValue, Names};

use crate::history::{Lease, Wait};
use crate::state::connection::Upload;
use crate::time::{MILLIS, MachineClock, Time};

/// A server: an in-memory Redis with a clock of its own.
#[derive(Debug)]
pub(crate) struct SimServer {
    pub(crate) redis: FakeRedis,
    pub(crate) clock: MachineClock,
    pub(crate) state: ServerState,
    /// The requests that arrived while the server was paused.
    pub(crate) inbox: VecDeque<(usize, Upload)>,
    /// The connection that reads the server log.
    pub(crate) observer: ConnectionId,
    /// The server log: what it holds of each lock.
    pub(crate) log: Vec<LockLog>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerState {
    Up,
    Paused,
    Down,
}

/// What a server held of one lock at the last look.
#[derive(Clone, Debug)]
pub(crate) struct LockLog {
    pub(crate) leases: Rc<[Lease]>,
    pub(crate) queue: Vec<Wait>,
}

/// The keys of one lock.
#[derive(Debug)]
pub(crate) struct LockKeys {
    pub(crate) key: Key,
    queue: String,
    readers: String,
    slots: String,
}

impl LockKeys {
    pub(crate) fn new(number: usize) -> Self {
        let key = Key::new(format!("lock{number}")).expect("a valid name");
        let names = Names::new("", &key);
        let [queue, readers, slots] = ["queue", "readers", "slots"].map(|kind| names.record(kind));
        Self {
            queue,
            readers,
            slots,
            key,
        }
    }
}

/// The wait of each owner. Values of foreign clients are owners, too.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    waits: HashMap<Vec<u8>, Wait, FixedState>,
    next: Wait,
}

impl Owners {
    pub(crate) fn add(&mut self, owner: impl FnOnce(Wait) -> Vec<u8>) -> Wait {
        let wait = self.next;
        self.next += 1;
        self.waits.insert(owner(wait), wait);
        wait
    }

    /// The wait continues with another owner.
    pub(crate) fn rename(&mut self, wait: Wait, owner: Vec<u8>) {
        self.waits.insert(owner, wait);
    }

    /// Returns the wait of an owner or of an entry, which is an owner with a mark.
    pub(crate) fn wait(&self, owner: &[u8]) -> Option<Wait> {
        let owner = owner.split(|byte| *byte == b'/').next().unwrap_or_default();
        self.waits.get(owner).copied()
    }
}

impl SimServer {
    pub(crate) fn new(
        mut redis: FakeRedis,
        clock: MachineClock,
        locks: usize,
        durable: bool,
    ) -> Self {
        if durable {
            for (setting, value) in [("appendonly", "yes"), ("appendfsync", "always")] {
                redis.configure(setting, value);
            }
        }
        let nothing = LockLog {
            leases: Rc::new([]),
            queue: Vec::new(),
        };
        Self {
            observer: redis.connect(),
            redis,
            clock,
            state: ServerState::Up,
            inbox: VecDeque::new(),
            log: vec![nothing; locks],
        }
    }

    /// Runs a command of a client that is outside the simulated network.
    pub(crate) fn command(&mut self, now_us: u64, command: &[&str]) -> Reply {
        self.redis.execute(now_us, self.observer, command)
    }

    pub(crate) fn leases(&mut self, now: Time, keys: &LockKeys, owners: &Owners) -> Rc<[Lease]> {
        let clock = self.clock.wall_micros(now);
        let lock = keys.key.as_str();
        let Reply::Bulk(value) = self.command(clock, &["GET", lock]) else {
            return Rc::new([]);
        };
        let until = |clock_of: &MachineClock, ends_ms: u64| {
            now + clock_of.span_of((ends_ms * MILLIS).saturating_sub(clock))
        };
        let (mode, is_permit) = match LockValue::read(&value) {
            LockValue::Shared => (Mode::Shared, false),
            LockValue::Permits(permits) => (Mode::Permit(permits), true),
            LockValue::Next | LockValue::Broken(_) | LockValue::OtherType(_) => return Rc::new([]),
            LockValue::Owner(_) | LockValue::Foreign => {
                let Reply::Integer(left) = self.command(clock, &["PTTL", lock]) else {
                    return Rc::new([]);
                };
                let wait = owners.wait(&value);
                let lease = wait.map(|wait| Lease {
                    wait,
                    mode: Mode::Exclusive,
                    slot: None,
                    until: now + self.clock.span_of(left as u64 * MILLIS),
                });
                return lease.into_iter().collect();
            }
        };
        let from = format!("({}", clock / MILLIS);
        let range = ["ZRANGEBYSCORE", &keys.readers, &from, "+inf", "WITHSCORES"];
        let mut leases = Vec::new();
        for (member, ends) in pairs(self.command(clock, &range)) {
            let text = String::from_utf8_lossy(&member).into_owned();
            let owner = if is_permit {
                match self.command(clock, &["HGET", &keys.slots, &text]) {
                    Reply::Bulk(owner) => owner,
                    _ => continue,
                }
            } else {
                member
            };
            leases.extend(owners.wait(&owner).map(|wait| Lease {
                wait,
                mode,
                slot: text.parse().ok().filter(|_| is_permit),
                until: until(&self.clock, ends),
            }));
        }
        leases.into()
    }

    pub(crate) fn queue(&mut self, now: Time, keys: &LockKeys, owners: &Owners) -> Vec<Wait> {
        let clock = self.clock.wall_micros(now);
        let Reply::Array(entries) = self.command(clock, &["ZRANGE", &keys.queue, "0", "-1"]) else {
            return Vec::new();
        };
        let waits = entries.iter().filter_map(|entry| match entry {
            Reply::Bulk(entry) => owners.wait(entry),
            _ => None,
        });
        waits.collect()
    }

    pub(crate) fn log(&self, lock: usize) -> (&[Lease], &[Wait]) {
        (&self.log[lock].leases, &self.log[lock].queue)
    }
}

/// Reads members with their scores, which are instants in milliseconds.
fn pairs(reply: Reply) -> Vec<(Vec<u8>, u64)> {
    let Reply::Array(items) = reply else {
        return Vec::new();
    };
    let pairs = items.chunks_exact(2).filter_map(|pair| match pair {
        [Reply::Bulk(member), Reply::Double(score)] => Some((member.clone(), *score as u64)),
        _ => None,
    });
    pairs.collect()
}
