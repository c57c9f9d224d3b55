use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use foldhash::fast::FixedState;
use leasehold::{Key, Mode};
use leasehold_fakeredis::{ConnectionId, FakeRedis, Reply};
use leasehold_quorum::{Place, Request};
use leasehold_redis::codec::{LockValue, Names};

use crate::actions::network::Upload;
use crate::history::{Execution, Kind, Lease, Wait, What};
use crate::state::simulation::Simulation;
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
    log: Vec<LockLog>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerState {
    Up,
    Paused,
    Down,
}

/// What a server held of one lock at the last look.
#[derive(Clone, Debug)]
struct LockLog {
    leases: Rc<[Lease]>,
    queue: Vec<Wait>,
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

    fn leases(&mut self, now: Time, keys: &LockKeys, owners: &Owners) -> Rc<[Lease]> {
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

    fn queue(&mut self, now: Time, keys: &LockKeys, owners: &Owners) -> Vec<Wait> {
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

impl Simulation {
    /// Delivers to a server what a client sent.
    pub(crate) fn receive(&mut self, server: usize, number: usize, upload: Upload) {
        match self.servers[server].state {
            ServerState::Up => self.run_upload(server, number, upload),
            ServerState::Paused => self.servers[server].inbox.push_back((number, upload)),
            // The operating system refuses it.
            ServerState::Down => self.break_connection(number, 0),
        }
    }

    pub(crate) fn run_upload(&mut self, server: usize, number: usize, upload: Upload) {
        let clock = self.servers[server].clock.wall_micros(self.now);
        let redis = &mut self.servers[server].redis;
        let is_first = self.connections[number].redis.is_none();
        if is_first && self.connections[number].was_accepted {
            return;
        }
        let id = *self.connections[number]
            .redis
            .get_or_insert_with(|| redis.connect());
        self.connections[number].was_accepted = true;
        for (request, bytes) in upload {
            let touched = request.as_deref().map(|request| self.touched(request));
            let before = touched.iter().flatten();
            let before: Vec<_> = before
                .map(|(_, lock, _)| self.last_observed(server, *lock))
                .collect();
            self.servers[server].redis.receive(clock, id, &bytes);
            let client = self.connections[number].client;
            if let Some(Request::Status) = request.as_deref() {
                self.add(What::Looked { server, client });
            }
            let Some(touched) = touched else { continue };
            for ((kind, lock, wait), before) in touched.into_iter().zip(before) {
                let after = self.observe(server, lock);
                let connection = &self.connections[number];
                let execution = Execution {
                    server,
                    client: connection.client,
                    kind,
                    lock,
                    wait,
                    stray: !connection.is_open,
                    before,
                    after,
                };
                self.stats.requests += 1;
                self.add(What::Executed(execution));
                self.log_queue(server, lock);
            }
        }
        self.collect_output(server);
    }

    /// Sends what the server has to send to its clients.
    pub(crate) fn collect_output(&mut self, server: usize) {
        for number in 0..self.connections.len() {
            let connection = &self.connections[number];
            if connection.server == server
                && let Some(id) = connection.redis
                && self.servers[server].redis.has_output(id)
            {
                let bytes = self.servers[server].redis.take_bytes(id);
                if !bytes.is_empty() {
                    self.send_down(number, bytes);
                }
            }
        }
    }

    /// The locks and waits that a request names.
    fn touched(&self, request: &Request) -> Vec<(Kind, usize, Wait)> {
        let one = |kind, claim: &leasehold::Claim| {
            let lock = self.locks.iter().position(|keys| keys.key == claim.key);
            let wait = self.owners.wait(&claim.owner.to_ascii());
            lock.zip(wait).map(|(lock, wait)| (kind, lock, wait))
        };
        let found = match request {
            Request::TryAcquire { claim, .. } => vec![one(Kind::Try, claim)],
            Request::DrawFence { claim } => vec![one(Kind::DrawFence, claim)],
            Request::Acquire { claim, place, .. } => match place {
                Place::Ticket(_) => vec![one(Kind::Acquire, claim)],
                Place::None | Place::Barging => vec![one(Kind::Try, claim)],
            },
            Request::Free { claim } => vec![one(Kind::Release, claim)],
            Request::Release { claim, requeue, .. } => {
                let kind = requeue.map_or(Kind::Release, |_| Kind::Requeue);
                vec![one(kind, claim)]
            }
            Request::Renew(leases) => leases
                .iter()
                .map(|it| one(Kind::Renew, &it.claim))
                .collect(),
            Request::Repair(leases) => leases
                .iter()
                .map(|it| one(Kind::Repair, &it.claim))
                .collect(),
            Request::Heartbeat(claims) => {
                claims.iter().map(|it| one(Kind::Heartbeat, it)).collect()
            }
            Request::ConfirmFence { claim, .. } => vec![one(Kind::ConfirmFence, claim)],
            _ => Vec::new(),
        };
        found.into_iter().flatten().collect()
    }

    fn observe(&mut self, server: usize, lock: usize) -> Rc<[Lease]> {
        let leases = self.servers[server].leases(self.now, &self.locks[lock], &self.owners);
        self.servers[server].log[lock].leases = Rc::clone(&leases);
        leases
    }

    /// Returns the leases of the last look, without those that ended since. Servers count in milliseconds.
    fn last_observed(&self, server: usize, lock: usize) -> Rc<[Lease]> {
        let known = &self.servers[server].log[lock].leases;
        let stands = |lease: &Lease| lease.until + 2 * MILLIS > self.now;
        if known.iter().all(stands) {
            return Rc::clone(known);
        }
        known
            .iter()
            .filter(|lease| stands(lease))
            .copied()
            .collect()
    }

    fn log_queue(&mut self, server: usize, lock: usize) {
        let waits = self.servers[server].queue(self.now, &self.locks[lock], &self.owners);
        let known = &mut self.servers[server].log[lock].queue;
        if *known != waits {
            known.clone_from(&waits);
            self.add(What::Queue {
                server,
                lock,
                waits,
            });
        }
    }

    /// Logs what a server holds, after a change that no request caused.
    pub(crate) fn log_server(&mut self, server: usize) {
        for lock in 0..self.locks.len() {
            let leases = self.observe(server, lock);
            self.add(What::Holds {
                server,
                lock,
                leases,
            });
            self.log_queue(server, lock);
        }
    }
}
