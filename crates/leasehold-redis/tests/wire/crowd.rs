//! Random claims of all modes by several clients, which only react to notifications. Holders that exclude
//! each other never hold at the same time, fences rise, and no waiter stays behind while it could have the
//! lock.

use std::sync::Arc;

use leasehold::Mode;
use leasehold::env::Entropy as _;
use leasehold::store::{Claim, Slot};
use leasehold_quorum::{Place, Reply};
use leasehold_testkit::SeededEntropy;
use leasehold_testkit::servers::RedisServer;

use crate::fixture::{Answered, TestClient, permits};

const SEEDS: u64 = 60;
const STEPS: u64 = 60;

#[derive(Clone)]
struct Wait {
    client: usize,
    claim: Arc<Claim>,
    ticket: u64,
}

struct Crowd {
    clients: Vec<TestClient>,
    waiting: Vec<Wait>,
    held: Vec<(Wait, Option<Slot>)>,
    random: SeededEntropy,
    key: String,
    seed: u64,
    last_fence: u64,
    last_ticket: u64,
}

impl Crowd {
    fn below(&self, limit: usize) -> usize {
        (self.random.next_u64() % limit as u64) as usize
    }

    fn new_wait(&mut self) -> Wait {
        let client = self.below(self.clients.len());
        let mode = [Mode::Exclusive, Mode::Shared, permits(2)][self.below(3)];
        self.last_ticket += 1;
        Wait {
            client,
            claim: self.clients[client].claim_on(&self.key, mode),
            ticket: self.last_ticket,
        }
    }

    fn note_granted(&mut self, wait: Wait, fence: u64, slot: Option<Slot>) {
        assert!(fence > self.last_fence, "seed {}: fences", self.seed);
        self.last_fence = fence;
        self.waiting
            .retain(|other| other.claim.owner != wait.claim.owner);
        self.held.push((wait, slot));
        let modes: Vec<_> = self.held.iter().map(|(held, _)| held.claim.mode).collect();
        let slots: Vec<_> = self.held.iter().map(|(_, slot)| *slot).collect();
        let is_sound = match modes[0] {
            Mode::Exclusive => modes.len() == 1,
            mode @ Mode::Shared => modes.iter().all(|other| *other == mode),
            mode @ Mode::Permit(_) => {
                modes.iter().all(|other| *other == mode)
                    && (slots.len() == 1 || slots.len() == 2 && slots[0] != slots[1])
            }
        };
        assert!(is_sound, "seed {}: {modes:?} {slots:?}", self.seed);
    }

    fn ask(&mut self, wait: &Wait, place: Place) {
        match self.clients[wait.client].acquire(&wait.claim, place) {
            Answered(Reply::Granted { fence, slot }) => {
                self.note_granted(wait.clone(), fence.get(), slot);
            }
            Answered(Reply::Busy(_)) => {
                let owner = wait.claim.owner;
                let is_known = self.waiting.iter().any(|other| other.claim.owner == owner);
                if place != Place::None && !is_known {
                    self.waiting.push(wait.clone());
                }
            }
            other => panic!("seed {}: {other:?}", self.seed),
        }
    }

    fn release_any(&mut self) {
        let (wait, _) = self.held.remove(self.below(self.held.len()));
        let own = self
            .waiting
            .iter()
            .filter(|other| other.client == wait.client);
        let oldest = own.min_by_key(|other| other.ticket).cloned();
        let client = &mut self.clients[wait.client];
        match self.random.next_u64() % 4 {
            0 => {
                client.release_to(&wait.claim, Some(wait.ticket), None);
                self.waiting.push(wait);
            }
            1 => {
                client.release(&wait.claim);
            }
            _ => {
                let next = oldest.as_ref().map(|next| (&next.claim, next.ticket));
                let (freed, granted) = client.release_to(&wait.claim, None, next);
                assert!(freed, "seed {}", self.seed);
                if let Some((fence, slot)) = granted {
                    self.note_granted(oldest.unwrap(), fence.get(), slot);
                }
            }
        }
    }

    fn step(&mut self) {
        match self.below(8) {
            0..3 => {
                let wait = self.new_wait();
                self.ask(&wait, Place::Ticket(wait.ticket));
            }
            3 => {
                let wait = self.new_wait();
                self.ask(&wait, Place::None);
            }
            4 if !self.waiting.is_empty() => {
                let wait = self.waiting.remove(self.below(self.waiting.len()));
                self.clients[wait.client].release(&wait.claim);
            }
            _ if !self.held.is_empty() => self.release_any(),
            _ => {}
        }
        self.react();
    }

    /// Makes all notified waiters ask, until there are no more notifications.
    fn react(&mut self) {
        loop {
            let mut is_quiet = true;
            for client in 0..self.clients.len() {
                for owner in self.clients[client].notified() {
                    is_quiet = false;
                    let is_called = |wait: &&Wait| wait.claim.owner == owner;
                    if let Some(wait) = self.waiting.iter().find(is_called).cloned() {
                        self.ask(&wait, Place::Ticket(wait.ticket));
                    }
                }
            }
            if is_quiet {
                break;
            }
        }
        self.check_head();
    }

    /// Checks that the oldest waiter cannot join the holders.
    fn check_head(&self) {
        let Some(head) = self.waiting.iter().min_by_key(|wait| wait.ticket) else {
            return;
        };
        let modes: Vec<_> = self.held.iter().map(|(held, _)| held.claim.mode).collect();
        let may_join = match (head.claim.mode, modes.first()) {
            (_, None) | (Mode::Shared, Some(Mode::Shared)) => true,
            (Mode::Permit(_), Some(Mode::Permit(_))) => modes.len() < 2,
            _ => false,
        };
        assert!(
            !may_join,
            "seed {}: {} waits beside {modes:?}",
            self.seed, head.claim.mode
        );
    }
}

#[test]
fn waiters_are_served_by_notifications_alone() {
    let server = RedisServer::start();
    for seed in 0..SEEDS {
        let mut crowd = Crowd {
            clients: (0..3).map(|_| TestClient::connect(&server)).collect(),
            waiting: Vec::new(),
            held: Vec::new(),
            random: SeededEntropy::new(seed),
            key: format!("k{seed}"),
            seed,
            last_fence: 0,
            last_ticket: 0,
        };
        for step in 0..STEPS {
            if step % 10 == 0 {
                crowd.clients.iter_mut().for_each(|client| {
                    client.heartbeat(&[]);
                });
            }
            crowd.step();
        }
        while !crowd.held.is_empty() {
            crowd.release_any();
            crowd.react();
        }
        assert_eq!(crowd.waiting.len(), 0, "seed {seed}");
        let pattern = format!("*k{seed}");
        let left = crowd.clients[0].command(&["KEYS", &pattern]);
        let left = left.as_array().unwrap();
        assert_eq!(
            left.len(),
            1,
            "seed {seed}: only the fence is left, not {left:?}"
        );
    }
}
