use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use leasehold::look::{ClientId, ClientInfo};
use leasehold::member::{MemberId, MemberSet};
use leasehold_quorum::{Config, Engine, Event, MemberEvent};
use leasehold_redis::codec::Codec;

use crate::faults::FaultKind;
use crate::history::What;
use crate::plan::Plan;
use crate::rng::SimRng;
use crate::state::agenda::Action;
use crate::state::client::{ClientState, SimClient};
use crate::state::program::{Program, ProgramState};
use crate::state::session::Session;
use crate::state::simulation::{Simulation, Stream};
use crate::time::{MachineClock, SECOND};

impl Simulation {
    /// Starts a client with its programs.
    pub(crate) fn join(&mut self) {
        let client = self.add_client();
        for program in 0..self.plan.programs {
            let rng = SimRng::new(self.seed, Stream::Program(client, program).number());
            let start = self.plan.start.saturating_sub(self.now);
            let pause = start + rng.below(50_000);
            self.clients[client].programs.push(Program::new(rng));
            self.set_program(client, program, ProgramState::Idle, Some(pause));
        }
    }

    pub(crate) fn add_client(&mut self) -> usize {
        let client = self.clients.len();
        let plan = Arc::clone(&self.plan);
        let rng = SimRng::new(self.seed, Stream::Client(client).number());
        let offset = match plan.has(FaultKind::WildClock) {
            true => 300 * SECOND as i64,
            false => 500_000,
        };
        let clock = MachineClock::new(rng.around_zero(plan.drift), rng.around_zero(offset));
        let since = clock.now(self.now).wall;
        let id = ClientId::random(&rng);
        let info = ClientInfo::new(id, "sim".into(), client as u32, "sim".into(), since);
        let ids = (0..plan.servers).map(|number| MemberId::new(format!("m{number}")));
        let max_ttl = Duration::from_micros(Plan::MAX_TTL);
        let engine = Engine::new(Config {
            set: MemberSet::new(ids, max_ttl, Plan::CLOCK_TOLERANCE),
            enforced: true,
            read_only: false,
            entropy: rng.entropy(),
        });
        let codec = Codec {
            prefix: String::new(),
            user: "default".into(),
            client: id,
        };
        self.add(What::Joined {
            client,
            members: plan.servers,
        });
        self.clients.push(SimClient {
            info: Arc::new(info),
            clock,
            engine,
            started: 0,
            members: match plan.has_second_list && client >= plan.clients {
                true => (0..plan.servers - 1).chain([plan.servers]).collect(),
                false => (0..plan.servers).collect(),
            },
            sessions: (0..plan.servers)
                .map(|_| Session::new(codec.clone()))
                .collect(),
            programs: Vec::new(),
            guards: BTreeMap::new(),
            operations: BTreeMap::new(),
            state: ClientState::Running,
            inbox: VecDeque::new(),
            broken: VecDeque::new(),
            late: Vec::new(),
            is_flush_planned: false,
            wake_at: None,
            token: 0,
        });
        for member in self.clients[client].sessions.keys() {
            self.connect(client, member);
        }
        client
    }

    pub(crate) fn running_clients(&self) -> Vec<usize> {
        let all = 0..self.clients.len();
        all.filter(|client| self.clients[*client].is_running())
            .collect()
    }

    /// Handles the events of the engine and its requests, and sets the next timer.
    pub(crate) fn turn(&mut self, client: usize) {
        if !self.clients[client].is_running() {
            return;
        }
        while let Some(event) = self.clients[client].engine.poll_member_event() {
            if let MemberEvent::Suspended { span, .. } = event {
                self.clients[client].clock.set_ahead(span);
            }
            self.note(|| format!("client {client}: {event:?}"));
        }
        while let Some((id, event)) = self.clients[client].engine.poll_event() {
            match event {
                Event::Done(outcome) => match self.clients[client].operations.remove(&id) {
                    Some(purpose) => self.conclude(client, purpose, outcome),
                    None => self.note(|| format!("outcome of no operation: {outcome:?}")),
                },
                Event::Progress(progress) => {
                    self.note(|| format!("client {client}: {id:?} {progress:?}"));
                }
            }
        }
        self.collect_requests(client);
        self.set_timer(client);
    }

    fn set_timer(&mut self, client: usize) {
        let next = self.clients[client].engine.next_timeout();
        let next = [next, self.next_guard(client)].into_iter().flatten().min();
        let Some(next) = next else { return };
        let it = &mut self.clients[client];
        let at = it.clock.when(next).max(self.now + 1);
        if it.wake_at.is_none_or(|known| at < known) {
            it.wake_at = Some(at);
            it.token += 1;
            let token = it.token;
            self.agenda.add(at, Action::Wake { client, token });
        }
    }

    pub(crate) fn wake(&mut self, client: usize, token: u64) {
        if self.clients[client].token != token {
            return;
        }
        self.clients[client].wake_at = None;
        if self.clients[client].is_running() {
            self.run_timers(client);
        }
    }

    fn run_timers(&mut self, client: usize) {
        let now = self.clients[client].now(self.now);
        self.clients[client].engine.handle_timeout(now);
        self.tend_guards(client);
        self.turn(client);
    }

    /// Continues a stopped client. It finds timers that are due, and data that arrived.
    pub(crate) fn wake_client(&mut self, client: usize) {
        if self.clients[client].state != ClientState::Stopped {
            return;
        }
        self.add(What::Woke { client });
        self.clients[client].state = ClientState::Running;
        self.clients[client].clock.thaw(self.now);
        for action in std::mem::take(&mut self.clients[client].late) {
            self.agenda.add(self.now, action);
        }
        if self.rng.faults.percent(50) {
            self.run_timers(client);
            self.process_inbox(client);
        } else {
            self.process_inbox(client);
            self.run_timers(client);
        }
    }
}
