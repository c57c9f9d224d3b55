use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::ambient::Ambient;
use leasehold::{Client, Key, Member, MemberId, Quorum};
use tokio::task::JoinHandle;

use super::chance::Chance;
use super::faults::{FaultClass, Faults};
use super::gate::Gate;
use super::history::{History, What};
use super::machine::Machine;
use super::plan::Plan;
use super::remote_member::RemoteMember;
use super::server::{Comeback, Condition, Server};
use super::timeline::Timeline;
use super::wire::Wire;
use super::work::Work;
use super::workload::{Program, key_name};
use crate::virtual_time::lock;

/// Servers, clients and the network between them, all of one seed.
#[derive(Debug)]
pub(crate) struct World {
    seed: u64,
    pub(crate) timeline: Timeline,
    pub(crate) history: History,
    pub(crate) plan: Plan,
    /// Those of the set come first; one that is in another client's list may follow.
    pub(crate) servers: Vec<Arc<Server>>,
    pub(crate) work: Arc<Work>,
    peers: Mutex<Vec<Peer>>,
    programs: Mutex<Vec<(usize, JoinHandle<()>)>>,
    calmed: AtomicBool,
}

/// A client and what belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) number: usize,
    pub(crate) machine: Machine,
    pub(crate) client: Client,
    wires: Vec<Arc<Wire>>,
    crashed: Arc<Gate>,
    /// It was given another list of members.
    pub(crate) is_outsider: bool,
}

/// The parts of a world that draw from chance; each client and server has a number of its own.
enum Stream {
    Server(usize),
    Client(usize),
    Program(usize, usize),
    Choice(usize, usize),
    Wire(usize, usize),
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan) -> Self {
        let timeline = Timeline::begin();
        let history = History::new(timeline);
        let spare = usize::from(plan.has(FaultClass::OtherSet));
        let keys: Vec<Key> = (0..plan.mix.keys())
            .map(|key| Key::new(key_name(key)).expect("a valid name"))
            .collect();
        let server = |number| {
            let chance = stream(seed, Stream::Server(number));
            let (rate, offset) = (chance.around_zero(plan.drift), chance.around_zero(30_000));
            let machine = Machine::server(timeline, rate, offset);
            let (history, keys) = (history.clone(), keys.clone());
            let server = Server::new(
                number,
                machine,
                timeline,
                history,
                chance,
                keys,
                plan.kills_old,
            );
            server.store().claim_durable(plan.durable);
            Arc::new(server)
        };
        Self {
            servers: (0..plan.servers + spare).map(server).collect(),
            work: Arc::new(Work::new(history.clone(), plan.clone())),
            seed,
            timeline,
            history,
            plan,
            peers: Mutex::default(),
            programs: Mutex::default(),
            calmed: AtomicBool::new(false),
        }
    }

    /// Adds a client; it has the set, unless it is the outsider.
    pub(crate) async fn add_client(&self, is_outsider: bool) -> Peer {
        let number = lock(&self.peers).len();
        let chance = stream(self.seed, Stream::Client(number));
        let machine = self.client_machine(&chance);
        let wires = self.wires_of(number, &machine, is_outsider);
        let ambient = Ambient {
            clock: Arc::new(machine.clone()),
            entropy: chance.entropy(),
        };
        self.history.add(What::Joined {
            client: number,
            members: wires.len(),
        });
        let quorum = form(&wires, &ambient);
        if number == 0 && self.plan.init {
            let formed = quorum.init().await;
            self.history.note(format!("the set is formed: {formed:?}"));
        }
        let client = Client::builder(quorum)
            .program("sim")
            .ambient(ambient)
            .on_current_runtime()
            .build();
        let peer = Peer {
            number,
            machine,
            client,
            wires: wires.into_iter().map(|(_, wire)| wire).collect(),
            crashed: Arc::default(),
            is_outsider,
        };
        lock(&self.peers).push(peer.clone());
        peer
    }

    fn client_machine(&self, chance: &Chance) -> Machine {
        let rate = chance.around_zero(self.plan.drift);
        let wild = self.plan.has(FaultClass::WildClock);
        let offset = if wild { 300_000_000 } else { 1_000_000 };
        let machine = Machine::new(self.timeline, rate, chance.around_zero(offset));
        if wild && chance.percent(30) {
            machine.stop_wall();
        }
        machine
    }

    fn wires_of(
        &self,
        client: usize,
        machine: &Machine,
        outsider: bool,
    ) -> Vec<(MemberId, Arc<Wire>)> {
        let set = self.plan.servers;
        let mut members: Vec<(String, usize)> = (0..set).map(|n| (format!("m{n}"), n)).collect();
        if outsider {
            let spare = (format!("m{set}"), set);
            match set {
                3 => members[2] = spare,
                _ => members.truncate(3),
            }
        } else if self.plan.has(FaultClass::SameServer) {
            members[set - 1].1 = 0;
        }
        let wire = |(id, server): (String, usize)| {
            let chance = stream(self.seed, Stream::Wire(client, server));
            let server = Arc::clone(&self.servers[server]);
            let wire = Wire::new(client, machine.clone(), server, self.timeline, chance);
            (MemberId::new(id), wire)
        };
        members.into_iter().map(wire).collect()
    }

    /// Lets a client's programs work, until they are over or the client crashes.
    pub(crate) fn employ(&self, peer: &Peer) {
        for wire in &peer.wires {
            wire.suffer(self.plan.faults);
        }
        for number in 0..self.plan.programs {
            self.start(peer, number);
        }
    }

    fn start(&self, peer: &Peer, number: usize) {
        let program = Program {
            client_number: peer.number,
            number,
            machine: peer.machine.clone(),
            client: peer.client.clone(),
            chance: stream(self.seed ^ 1, Stream::Program(peer.number, number)),
            choice: stream(self.seed, Stream::Choice(peer.number, number)),
            work: Arc::clone(&self.work),
        };
        let crashed = Arc::clone(&peer.crashed);
        let running = leasehold::background::spawn(async move {
            tokio::select! {
                biased;
                () = crashed.pass() => {}
                () = program.run() => {}
            }
        });
        lock(&self.programs).push((peer.number, running));
    }

    pub(crate) fn wires(&self) -> Vec<Arc<Wire>> {
        let peers = lock(&self.peers);
        let living = peers.iter().filter(|peer| !peer.crashed.is_open());
        living.flat_map(|peer| peer.wires.iter().cloned()).collect()
    }

    pub(crate) fn living(&self) -> Vec<Peer> {
        let peers = lock(&self.peers);
        let living = peers.iter().filter(|peer| !peer.crashed.is_open());
        living.cloned().collect()
    }

    /// Stops one that is awake, if there is one.
    pub(crate) fn pause_client(&self, chance: &Chance, frozen: bool) -> Option<Peer> {
        let mut awake = self.living();
        awake.retain(|peer| peer.machine.is_awake());
        if awake.is_empty() {
            return None;
        }
        let peer = chance.pick(&awake).clone();
        let client = peer.number;
        self.history.add(What::Paused { client, frozen });
        peer.machine.pause(frozen);
        Some(peer)
    }

    pub(crate) fn wake_client(&self, peer: &Peer) {
        if !peer.crashed.is_open() && !peer.machine.is_awake() {
            self.history.add(What::Woke {
                client: peer.number,
            });
            peer.machine.wake();
        }
    }

    /// Ends a client, which never hears or says anything again. If it was killed, its system shuts
    /// its connections; if its power failed, nobody does.
    pub(crate) fn crash_client(&self, peer: &Peer, killed: bool) {
        let client = peer.number;
        self.history.add(What::Crashed { client, killed });
        peer.machine.pause(false);
        peer.crashed.open();
        for wire in &peer.wires {
            wire.hang_up(killed);
        }
    }

    /// Whether nothing goes wrong any more.
    pub(crate) fn is_calm(&self) -> bool {
        self.calmed.load(Ordering::Acquire)
    }

    /// Sets everything right, as far as it can be.
    pub(crate) fn clear_up(&self) {
        self.calmed.store(true, Ordering::Release);
        if self.plan.faults != Faults::NONE {
            self.history.add(What::Cleared);
        }
        for server in &self.servers {
            match server.condition() {
                Condition::Up => {}
                Condition::Frozen => server.thaw(),
                Condition::Down { .. } => server.come_back(Comeback::Complete),
            }
            let off = server.machine.wall_offset();
            if off.unsigned_abs() > 30_000 {
                server.step(-off);
            }
            if self.plan.faults != Faults::NONE {
                server.reset_connections();
            }
        }
        let peers = lock(&self.peers).clone();
        for peer in &peers {
            self.wake_client(peer);
            for wire in &peer.wires {
                wire.heal();
                // What is still on its way from there has nobody who would take it back.
                if peer.crashed.is_open() {
                    wire.lose_all();
                }
            }
        }
    }

    /// Waits for the programs; names those that do not end.
    pub(crate) async fn dismiss(&self) {
        let programs = std::mem::take(&mut *lock(&self.programs));
        let end = self.timeline.now() + TO_BEGIN_WITH + EACH * programs.len() as u32;
        for (client, running) in programs {
            let ended = tokio::select! {
                biased;
                ended = running => ended.is_ok(),
                () = self.timeline.sleep_until(end) => false,
            };
            if !ended {
                self.history.add(What::Stuck { client });
            }
        }
    }
}

/// Until members count again, the longest lease is over, and a poll finds the lock free.
const TO_BEGIN_WITH: Duration = Duration::from_secs(30);

/// Until a program has its turn, sees that all is over, gives the lock back, and the next one comes.
const EACH: Duration = Duration::from_secs(5);

/// The quorum of a client: the one place that knows what all clients of a set agree on.
fn form(wires: &[(MemberId, Arc<Wire>)], ambient: &Ambient) -> Quorum {
    let members = wires
        .iter()
        .map(|(id, wire)| RemoteMember::new(id.clone(), Arc::clone(wire)))
        .map(|member| Arc::new(member) as Arc<dyn Member>);
    Quorum::new(members)
        .expect("a valid set")
        .clock_tolerance(Plan::CLOCK_TOLERANCE)
        .max_ttl(Plan::MAX_TTL)
        .ambient(ambient.clone())
}

fn stream(seed: u64, stream: Stream) -> Chance {
    let number = match stream {
        Stream::Server(server) => 0x1_0000 + server,
        Stream::Client(client) => 0x2_0000 + client,
        Stream::Program(client, program) => 0x4_0000 + (client << 5) + program,
        Stream::Choice(client, program) => 0x6_0000 + (client << 5) + program,
        Stream::Wire(client, server) => 0x3_0000 + (client << 5) + server,
    };
    Chance::new(seed, number as u64)
}
