use std::sync::Arc;
use std::time::Duration;

use leasehold::env::Entropy;
use leasehold::look::Owner;
use leasehold::member::PermitSlot;
use leasehold::store::LockRequest;
use leasehold::{ErrorKind, LostReason, Mode};
use leasehold_quorum::{LeaseState, Position, Reply};
use leasehold_testkit::SeededEntropy;

use super::memory::MemoryServer;
use super::model::Model;
use crate::breaking::break_lease;
use crate::fixture::{TestClient, lease, permits};

const READERS: &str = "leasehold:readers:{deploy}:deploy";
const SLOTS: &str = "leasehold:slots:{deploy}:deploy";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How many broken owners the server remembers.
const BREAKS_MAX: usize = 16;

/// One wait of a client, which may have the lock.
struct TestRequest {
    lock_request: Arc<LockRequest>,
    client: usize,
    /// Whether it may be in the queue.
    waits: bool,
    /// An owner that was released or broken asks no more.
    asks: bool,
}

/// A sequence of random calls on one lock.
pub(super) struct Run {
    server: MemoryServer,
    clients: Vec<TestClient>,
    requests: Vec<TestRequest>,
    model: Model,
    modes: Vec<Mode>,
    entropy: SeededEntropy,
    breaks: usize,
    seed: u64,
    log: Vec<String>,
}

impl Run {
    pub(super) fn start(seed: u64) -> Self {
        let server = MemoryServer::start();
        let clients = (0..4).map(|number| {
            let client = server.client(seed * 10 + number);
            // The last client is dead.
            if number < 3 {
                client.listening()
            } else {
                client
            }
        });
        let modes = match seed % 5 {
            0 => vec![Mode::Exclusive],
            1 => vec![Mode::Exclusive, Mode::Shared],
            2 | 3 => vec![permits(3)],
            _ => vec![Mode::Exclusive, Mode::Shared, permits(2), permits(3)],
        };
        Self {
            clients: clients.collect(),
            server,
            requests: Vec::new(),
            model: Model::default(),
            modes,
            entropy: SeededEntropy::new(seed),
            breaks: 0,
            seed,
            log: Vec::new(),
        }
    }

    pub(super) fn call(&mut self) {
        match self.below(20) {
            0..=6 => self.ask(),
            7..=9 => self.renew(),
            10..=12 => self.release(),
            13 => self.force_release(),
            14 | 15 => self.heartbeat(),
            16..=18 => self.forward(100),
            _ => self.forward(3000),
        }
        self.check_holders();
    }

    /// Releases everything, or lets it expire. Then nothing is left but what outlives a lease.
    pub(super) fn end(&mut self) {
        if self.seed.is_multiple_of(2) {
            for request in 0..self.requests.len() {
                self.release_one(request, None);
                self.check_holders();
            }
        } else {
            self.forward(0);
            self.server.forward(Duration::from_secs(20));
        }
        let is_open = self.model.at(self.server.now_ms()).admits(Mode::Exclusive);
        let outlives = |key: &str| {
            let kinds = [
                "leasehold:fence:0:",
                "leasehold:broken:",
                "leasehold:present",
            ];
            kinds.iter().any(|kind| key.starts_with(kind)) || key == "deploy" && !is_open
        };
        for key in self.keys() {
            self.check(outlives(&key), &format!("{key} is left"));
        }
        self.server.forward(7 * DAY + Duration::from_millis(1));
        let left = self.keys();
        self.check(left.is_empty(), &format!("{left:?} are left after 7 days"));
    }

    fn ask(&mut self) {
        let request = match self.below(3) {
            0 => self.newcomer(),
            _ => self
                .any(|request| request.asks)
                .unwrap_or_else(|| self.newcomer()),
        };
        let TestRequest {
            lock_request,
            client,
            ..
        } = &self.requests[request];
        let (lock_request, client) = (lock_request.clone(), *client);
        let position = match self.below(8) {
            0..=2 => Position::None,
            3 => Position::Barging,
            _ => Position::Ticket(1000 + self.below(50)),
        };
        let preferred = self.any_slot(lock_request.mode);
        let is_first = self.requests.len() == request + 1 && !self.requests[request].waits;
        self.model.at(self.server.now_ms());
        let is_holder = self.model.lease(&lock_request).is_some();
        let is_plain =
            is_first && !is_holder && lock_request.mode == Mode::Exclusive && self.below(2) == 0;
        let reply = if is_plain {
            self.clients[client].try_acquire(&lock_request)
        } else {
            let client = &mut self.clients[client];
            client
                .acquire_preferring(&lock_request, position, preferred)
                .0
        };
        self.note(format!(
            "{} asks at {position:?} for {preferred:?}: {reply:?}",
            lock_request.owner
        ));
        match reply {
            Reply::Granted { fence, slot } => self.granted(request, fence.get(), slot),
            Reply::Busy(_) => {
                self.check(!is_holder, "a holder is refused");
                let must = self.model.must_admit(lock_request.mode);
                let waits = self.requests.iter().any(|request| request.waits);
                self.check(!must || waits, "a free lock is refused");
                self.requests[request].waits = !is_plain && matches!(position, Position::Ticket(_));
            }
            Reply::Failed(error) => {
                self.check(error.kind() == ErrorKind::PermitsDiffer, "an error");
                self.check(
                    !is_holder && !self.model.must_admit(lock_request.mode),
                    "it is refused",
                );
                self.requests[request].waits = false;
            }
            other => panic!("an attempt is answered {other:?}"),
        }
    }

    fn granted(&mut self, request: usize, fence: u64, slot: Option<PermitSlot>) {
        let lock_request = self.requests[request].lock_request.clone();
        self.requests[request].waits = false;
        let noted = self.model.grant(&lock_request, fence, slot);
        self.check(noted.is_ok(), noted.err().unwrap_or_default());
    }

    fn renew(&mut self) {
        let Some(request) = self.any(|_| true) else {
            return;
        };
        let mut lock_request = self.requests[request].lock_request.clone();
        let named = self.any_slot(lock_request.mode);
        let now = self.server.now_ms();
        self.model.at(now);
        let held = self.model.lease(&lock_request).cloned();
        let is_downgrade = lock_request.mode == Mode::Exclusive
            && self.modes.contains(&Mode::Shared)
            && self.below(4) == 0;
        if is_downgrade {
            lock_request = Arc::new((*lock_request).clone().with_mode(Mode::Shared));
        }
        let client = &mut self.clients[self.requests[request].client];
        let answer = client
            .renew_all(vec![lease(&lock_request, 1, named)])
            .remove(0);
        self.note(format!(
            "{} renews {named:?}: {answer:?}",
            lock_request.owner
        ));
        let is_renewed = matches!(answer, LeaseState::Renewed);
        let Some(held) = held else {
            return self.check(!is_renewed, "a lease that ended is renewed");
        };
        let is_taken = named.is_some_and(|slot| self.model.is_taken(slot, lock_request.owner));
        let expected = match answer {
            LeaseState::Lost(LostReason::Taken) => is_taken,
            LeaseState::Renewed => !is_taken,
            _ => false,
        };
        self.check(expected, "a valid lease is lost");
        self.requests[request].lock_request = lock_request.clone();
        let former = Arc::new((*lock_request).clone().with_mode(held.mode));
        let lease = self.model.lease(&former).expect("it is valid");
        lease.mode = lock_request.mode;
        lease.ends = lease.ends.max(now + lock_request.ttl.as_millis() as u64);
        if is_renewed && named.is_some() {
            lease.slot = named;
        }
    }

    fn release(&mut self) {
        let Some(request) = self.any(|_| true) else {
            return;
        };
        let client = self.requests[request].client;
        let successor =
            self.any(|request| request.waits && request.asks && request.client == client);
        self.release_one(request, successor.filter(|other| *other != request));
    }

    fn release_one(&mut self, request: usize, successor: Option<usize>) {
        let TestRequest {
            lock_request,
            client,
            ..
        } = &self.requests[request];
        let (lock_request, client) = (lock_request.clone(), *client);
        let next = successor.map(|next| self.requests[next].lock_request.clone());
        let is_first = lock_request.mode == Mode::Exclusive && next.is_none() && self.below(2) == 0;
        let client = &mut self.clients[client];
        let (freed, granted) = if is_first && client.free(&lock_request) {
            (true, None)
        } else {
            client.release_to(
                &lock_request,
                None,
                next.as_ref().map(|lock_request| (lock_request, 1000)),
            )
        };
        self.note(format!(
            "{} is released to {next:?}: {freed}, {granted:?}",
            lock_request.owner
        ));
        let held = self.model.at(self.server.now_ms()).release(&lock_request);
        self.check(freed == held, "a release frees something else");
        (self.requests[request].asks, self.requests[request].waits) = (false, false);
        if let (Some(next), Some((fence, slot))) = (successor, granted) {
            self.granted(next, fence.get(), slot);
        }
    }

    fn force_release(&mut self) {
        let request = self.any(|_| true);
        let Some(request) = request.filter(|_| self.breaks < BREAKS_MAX) else {
            return;
        };
        self.breaks += 1;
        let lock_request = self.requests[request].lock_request.clone();
        let at_once = self.below(2) == 0;
        let (existed, _) = break_lease(
            &mut self.clients[0],
            &lock_request,
            if at_once { "1" } else { "" },
        );
        self.note(format!(
            "{} is broken, at once: {at_once}",
            lock_request.owner
        ));
        self.requests[request].asks = false;
        let model = self.model.at(self.server.now_ms());
        let held = model.force_release(lock_request.owner, at_once);
        self.check(existed == 1 || !held, "a break finds no lease");
    }

    fn heartbeat(&mut self) {
        let client = self.below(3) as usize;
        let waiter = self.any(|request| request.waits && request.client == client);
        let lock_request = waiter.map(|waiter| self.requests[waiter].lock_request.clone());
        self.clients[client].heartbeat(&lock_request.iter().collect::<Vec<_>>());
        self.note(format!("heartbeat of {client}"));
    }

    fn forward(&mut self, limit: u64) {
        let span = Duration::from_millis(self.below(limit + 1));
        self.server.forward(span);
        self.note(format!("{span:?} pass"));
    }

    /// Compares the holders that the server shows with those of the model.
    fn check_holders(&mut self) {
        let mut shown = self.shown_holders();
        shown.sort_unstable();
        let held = self.model.at(self.server.now_ms()).holders();
        self.check(shown == held, &format!("{shown:?} hold, and not {held:?}"));
    }

    /// Reads the holders as the specification says under "Inspection".
    fn shown_holders(&mut self) -> Vec<Owner> {
        let now = self.server.now_ms() as f64;
        let client = &mut self.clients[0];
        let value = client.value().unwrap_or_default();
        let is_shared = value == "leasehold:shared";
        if !is_shared && !value.starts_with("leasehold:permits:") {
            return value.parse().into_iter().collect();
        }
        let readers = client.command(&["ZRANGE", READERS, "0", "-1", "WITHSCORES"]);
        let readers = readers.as_array().expect("a list");
        let valid = readers.iter().filter_map(|reader| {
            let [member, ends] = reader.as_array()? else {
                return None;
            };
            let is_valid = ends.as_number()? > now;
            is_valid
                .then(|| member.as_text().map(str::to_owned))
                .flatten()
        });
        let valid: Vec<String> = valid.collect();
        let mut owner = |member: &String| match is_shared {
            true => member.parse().ok(),
            false => {
                let owner = client.command(&["HGET", SLOTS, member]);
                owner.as_text()?.parse().ok()
            }
        };
        valid.iter().filter_map(&mut owner).collect()
    }

    /// Returns all keys. Each of them must expire.
    fn keys(&mut self) -> Vec<String> {
        let answer = self.clients[0].command(&["SCAN", "0", "COUNT", "1000"]);
        let keys = answer.as_array().and_then(|parts| parts[1].as_array());
        let texts = keys.expect("a list").iter().map(|key| key.as_text());
        let keys: Vec<String> = texts.map(|key| key.expect("a text").to_owned()).collect();
        for key in &keys {
            let left = self.clients[0].command(&["PTTL", key]);
            let is_bounded = left.as_integer().is_some_and(|left| left >= 0);
            self.check(is_bounded, &format!("{key} never expires"));
        }
        keys
    }

    fn newcomer(&mut self) -> usize {
        let client = self.below(4) as usize;
        let mode = self.modes[self.below(self.modes.len() as u64) as usize];
        let mut lock_request = (*self.clients[client].lock_request(mode)).clone();
        lock_request.ttl = Duration::from_millis(50 + self.below(1500));
        self.requests.push(TestRequest {
            lock_request: Arc::new(lock_request),
            client,
            waits: false,
            asks: true,
        });
        self.requests.len() - 1
    }

    /// Returns one of the last requests for which `is_fit` is true.
    fn any(&self, is_fit: impl Fn(&TestRequest) -> bool) -> Option<usize> {
        let last = self.requests.len().saturating_sub(8)..self.requests.len();
        let fit: Vec<_> = last.filter(|at| is_fit(&self.requests[*at])).collect();
        let at = self.below(fit.len().max(1) as u64) as usize;
        fit.get(at).copied()
    }

    fn any_slot(&self, mode: Mode) -> Option<PermitSlot> {
        let Mode::Permit(permits) = mode else {
            return None;
        };
        let number = self.below(2 * u64::from(permits.get())) as usize;
        permits.slots().nth(number)
    }

    fn below(&self, limit: u64) -> u64 {
        self.entropy.next_u64() % limit
    }

    fn note(&mut self, call: String) {
        self.log
            .push(format!("{} ms: {call}", self.server.now_ms()));
    }

    fn check(&self, is_right: bool, rule: &str) {
        let last = self.log.len().saturating_sub(40);
        let calls = || self.log[last..].join("\n");
        assert!(is_right, "seed {}: {rule}\n{}", self.seed, calls());
    }
}
