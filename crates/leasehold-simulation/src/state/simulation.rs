use std::rc::Rc;
use std::sync::Arc;

use leasehold_fakeredis::FakeRedis;

use crate::faults::Faults;
use crate::history::{Event, What};
use crate::mutation::Mutation;
use crate::plan::Plan;
use crate::rng::SimRng;
use crate::state::agenda::Agenda;
use crate::state::client::SimClient;
use crate::state::connection::{Connection, Link};
use crate::state::poller::Poller;
use crate::state::server::{LockKeys, Owners, SimServer};
use crate::time::{MachineClock, Time};

/// Clients, servers and the network between them, all from one seed.
#[derive(Debug)]
pub(crate) struct Simulation {
    pub(crate) seed: u64,
    pub(crate) plan: Arc<Plan>,
    pub(crate) now: Time,
    pub(crate) agenda: Agenda,
    pub(crate) history: Vec<Event>,
    /// Whether the history has notes for readers.
    pub(crate) has_notes: bool,
    /// Whether holders use the records of their locks.
    pub(crate) has_records: bool,
    pub(crate) servers: Vec<SimServer>,
    pub(crate) clients: Vec<SimClient>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) links: Vec<Link>,
    pub(crate) pollers: Vec<Poller>,
    pub(crate) locks: Vec<LockKeys>,
    pub(crate) owners: Owners,
    pub(crate) rng: Rngs,
    pub(crate) mutation: Mutation,
    /// Stores all scripts, for servers that restart.
    pub(crate) scripts: Rc<FakeRedis>,
    pub(crate) phase: Phase,
    pub(crate) quiet_since: Time,
    /// The last fault has ended.
    pub(crate) is_cleared: bool,
    /// From now on no program asks for a lock.
    pub(crate) is_quiet: bool,
    /// A free lock must be granted once the last fault is over.
    pub(crate) is_live: bool,
    pub(crate) stats: Counts,
}

/// The streams of random numbers that belong to no client.
#[derive(Debug)]
pub(crate) struct Rngs {
    pub(crate) network: SimRng,
    pub(crate) faults: SimRng,
}

/// The phases of a run, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Clients work, and faults occur.
    Work,
    /// The faults have ended, and servers regain their votes.
    Recovery,
    /// No fault disturbs the clients, but a minority of servers may be down.
    Peace,
    /// Programs end.
    Quiet,
    /// Leases end.
    Settling,
    /// Queues end.
    Rest,
    Over,
}

/// The counters of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) grants: u64,
    pub(crate) foreign_grants: u64,
    pub(crate) requests: u64,
}

/// The parts of a run that draw random numbers of their own.
pub(crate) enum Stream {
    Plan,
    Network,
    Faults,
    Server(usize),
    Client(usize),
    Poller(usize),
    Program(usize, usize),
}

impl Stream {
    pub(crate) fn number(&self) -> u64 {
        let number = match self {
            Self::Plan => 0,
            Self::Network => 1,
            Self::Faults => 2,
            Self::Server(server) => 0x1_0000 + server,
            Self::Client(client) => 0x2_0000 + client,
            Self::Poller(poller) => 0x3_0000 + poller,
            Self::Program(client, program) => 0x4_0000 + (client << 5) + program,
        };
        number as u64
    }
}

impl Simulation {
    pub(crate) fn new(seed: u64, allowed: Faults, mutation: Mutation) -> Self {
        let plan = Plan::draw(&SimRng::new(seed, Stream::Plan.number()), allowed);
        Self::of_plan(seed, plan, mutation)
    }

    pub(crate) fn of_plan(seed: u64, plan: Plan, mutation: Mutation) -> Self {
        let rng = |stream: Stream| SimRng::new(seed, stream.number());
        let scripts = mutation.keeper();
        let server = |number: usize| {
            let rng = rng(Stream::Server(number));
            let clock = MachineClock::new(rng.around_zero(plan.drift), rng.around_zero(5_000));
            let mut redis = FakeRedis::new(number as u64, clock.wall_micros(0));
            if !plan.lazy_scripts {
                redis.copy_scripts(&scripts);
            }
            SimServer::new(redis, clock, plan.locks.len(), plan.durable)
        };
        Self {
            servers: (0..plan.servers + usize::from(plan.has_second_list))
                .map(server)
                .collect(),
            locks: (0..plan.locks.len()).map(LockKeys::new).collect(),
            pollers: (0..plan.pollers)
                .map(|number| Poller::new(rng(Stream::Poller(number))))
                .collect(),
            rng: Rngs {
                network: rng(Stream::Network),
                faults: rng(Stream::Faults),
            },
            scripts: Rc::clone(&scripts),
            seed,
            plan: Arc::new(plan),
            now: 0,
            agenda: Agenda::default(),
            history: Vec::new(),
            has_notes: false,
            has_records: false,
            clients: Vec::new(),
            connections: Vec::new(),
            links: Vec::new(),
            owners: Owners::default(),
            mutation,
            phase: Phase::Work,
            quiet_since: 0,
            is_cleared: false,
            is_quiet: false,
            is_live: true,
            stats: Counts::default(),
        }
    }

    pub(crate) fn add(&mut self, what: What) {
        self.history.push(Event { at: self.now, what });
    }

    /// Adds a note, if the history has notes.
    pub(crate) fn note(&mut self, text: impl FnOnce() -> String) {
        if self.has_notes {
            self.add(What::Note(text()));
        }
    }
}
