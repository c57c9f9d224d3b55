//! Runs one program.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock, within};
use leasehold::store::{Expiry, Order, Permits, Store, locked};
use leasehold::{Client, Mode};
use tempfile::TempDir;

use super::checks::{Assumptions, Violation, check};
use super::client::{Assignment, Log, perform};
use super::connections::Connections;
use super::generate::Capabilities;
use super::history::{Event, What};
use super::operation::{Fault, FaultStep, LOCKS, PERMIT_COUNT, PERMITS, Program};
use super::process::{ClientProcess, Signal};
use crate::harness::{Harness, Impact, Optional, Suite};

/// How long the clients may take after the last fault. Longer, and one of them hangs.
const FINISH_MAX: Duration = Duration::from_secs(40);

/// How long the traces of a client that was killed may stay.
const LEFT_MAX: Duration = Duration::from_secs(20);

/// The pause between two looks at what goes on.
const LOOK: Duration = Duration::from_millis(5);

/// The servers of one store, on which programs run.
#[derive(Debug)]
pub(crate) struct Testbed {
    suite: Suite,
    harness: Arc<dyn Harness>,
    pub(crate) capabilities: Capabilities,
    shortest_ttl: Duration,
    is_fifo: bool,
}

/// What came of a program.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) events: Vec<Event>,
    pub(crate) violations: Vec<Violation>,
}

impl Testbed {
    pub(crate) fn start(suite: Suite) -> Self {
        let harness = (suite.start)();
        let store = harness.open();
        let (guarantees, terms) = (store.guarantees(), store.terms());
        let capabilities = Capabilities {
            shared: guarantees.shared,
            permits: guarantees.permits,
            handles: guarantees.expiry == Expiry::Lease,
            breaks: suite.offers(Optional::Admin) && suite.offers(Optional::Inspection),
            records: suite.offers(Optional::Records),
            processes: cfg!(unix) && suite.open_at.is_some(),
            servers: harness.servers().len(),
            server_faults: harness.server_faults().len(),
        };
        Self {
            suite,
            capabilities,
            shortest_ttl: terms.ttl_min.max(Duration::from_secs(1)),
            is_fifo: guarantees.order == Order::Fifo,
            harness,
        }
    }

    /// Runs the program, and judges what happened.
    pub(crate) fn run(&self, program: &Program) -> Outcome {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("p{}-{number}/", std::process::id());
        let folder = tempfile::Builder::new()
            .prefix("leasehold-programs-")
            .tempdir()
            .expect("a folder");
        let running = Running::start(self, program, &prefix, folder);
        let (mut events, mut violations) = running.finish();
        violations.extend(self.probe(&prefix));
        events.sort_by_key(|event| event.at);
        violations.extend(check(&events, self.assumptions(program)));
        Outcome { events, violations }
    }

    fn assumptions(&self, program: &Program) -> Assumptions {
        let faults = self.harness.server_faults();
        let impact = |step: &FaultStep| match step.fault {
            Fault::Server(number) => faults[usize::from(number) % faults.len()].impact,
            _ => Impact::None,
        };
        Assumptions {
            is_fifo: self.is_fifo,
            is_undisturbed: program.faults.is_empty(),
            impact: program
                .faults
                .iter()
                .map(impact)
                .max()
                .unwrap_or(Impact::None),
        }
    }

    /// Takes each lock once, after everything has ended.
    fn probe(&self, prefix: &str) -> Vec<Violation> {
        let limit = self.harness.recovery() + self.shortest_ttl * 3;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let client = Client::new(self.harness.open());
            let mut found = Vec::new();
            for (number, lock) in LOCKS.iter().enumerate() {
                let is_permit = number == usize::from(PERMITS);
                if is_permit && !self.capabilities.permits {
                    continue;
                }
                let mode = match is_permit {
                    true => Mode::Permit(Permits::new(PERMIT_COUNT).expect("a number")),
                    false => Mode::Exclusive,
                };
                let lock = client.lock(format!("{prefix}{lock}")).mode(mode);
                let begun = SystemClock.now();
                let asking = lock.wait(limit).acquire();
                let end = begun + limit + Duration::from_secs(5);
                match within(&SystemClock, end, asking).await {
                    Some(Ok(guard)) => drop(guard.release().await),
                    Some(Err(error)) => found.push(Violation::new("freedom", error.to_string())),
                    None => found.push(Violation::new("freedom", "no answer to the last request")),
                }
            }
            // The releases are judged by what is left.
            drop(client.close(Duration::from_secs(5)).await);
            found.extend(self.leftovers(prefix));
            found
        })
    }

    /// Waits until the program has left nothing, for at most [`LEFT_MAX`]. A queue may outlive its clients by ten seconds, on a Redis
    /// server that was away when they ended.
    fn leftovers(&self, prefix: &str) -> Vec<Violation> {
        let end = SystemClock.now() + LEFT_MAX;
        loop {
            let left = self.harness.leftovers(prefix);
            if left.is_empty() {
                return Vec::new();
            }
            if SystemClock.now() > end {
                let violation = |left: &String| Violation::new("leftovers", left);
                return left.iter().map(violation).collect();
            }
            pause(LOOK * 20);
        }
    }
}

/// A program that is running.
struct Running<'a> {
    testbed: &'a Testbed,
    program: &'a Program,
    connections: Vec<Connections>,
    clients: Vec<RunningClient>,
    events: Vec<Event>,
    begun: BootInstant,
    /// The fault of the servers that goes on. There is one at a time.
    injected: Option<FaultStep>,
    /// Clients leave handles in it.
    _folder: TempDir,
}

enum RunningClient {
    Process(ClientProcess),
    Thread(JoinHandle<()>, Arc<Mutex<Vec<u8>>>),
}

impl<'a> Running<'a> {
    fn start(testbed: &'a Testbed, program: &'a Program, prefix: &str, folder: TempDir) -> Self {
        let servers = testbed.harness.servers();
        let connections: Vec<Connections> = program
            .clients
            .iter()
            .map(|_| Connections::to(&servers))
            .collect();
        let clients = program.clients.iter().enumerate().map(|(number, client)| {
            let assignment = Assignment {
                number,
                program: client.clone(),
                prefix: prefix.into(),
                shortest_ttl: testbed.shortest_ttl,
                folder: folder.path().into(),
            };
            match testbed.suite.open_at {
                Some(_) => {
                    let ports = connections[number].ports();
                    let address = testbed.harness.address_through(&ports);
                    let name = testbed.suite.name;
                    RunningClient::Process(ClientProcess::start(name, &address, &assignment))
                }
                None => RunningClient::in_thread(testbed.harness.open(), assignment),
            }
        });
        let clients = clients.collect();
        Self {
            testbed,
            program,
            clients,
            connections,
            events: Vec::new(),
            begun: SystemClock.now(),
            injected: None,
            _folder: folder,
        }
    }

    /// Causes the faults, and waits for the clients. Once all of them have ended, no further fault begins.
    fn finish(mut self) -> (Vec<Event>, Vec<Violation>) {
        let mut steps = timeline(&self.program.faults, self.testbed.shortest_ttl);
        steps.sort_by_key(|(at, ..)| *at);
        for (at, phase, step) in steps {
            while SystemClock.now() < self.begun + at && !self.have_ended() {
                pause(LOOK);
            }
            if phase != Phase::Begin || !self.have_ended() {
                self.carry_out(phase, step);
            }
        }
        let end = SystemClock.now() + FINISH_MAX;
        let mut violations = Vec::new();
        for client in &mut self.clients {
            while !client.has_ended() && SystemClock.now() < end {
                pause(LOOK);
            }
        }
        let count = self.clients.len();
        for (number, client) in self.clients.into_iter().enumerate() {
            let is_killed = |step: &FaultStep| match step.fault {
                Fault::KillClient(client) => usize::from(client) % count == number,
                _ => false,
            };
            let events = client.finish();
            let has_finished = events.last().is_some_and(|it| it.what == What::Finished);
            if !has_finished && !self.program.faults.iter().any(is_killed) {
                let text = format!("client {number} has crashed, or does not end");
                violations.push(Violation::new("calls end", text));
            }
            self.events.extend(events);
        }
        (self.events, violations)
    }

    fn have_ended(&mut self) -> bool {
        self.clients.iter_mut().all(RunningClient::has_ended)
    }

    fn carry_out(&mut self, phase: Phase, step: &FaultStep) {
        let what = format!("{:?} {phase:?}", step.fault);
        let count = self.clients.len();
        let chosen = |client: u8| usize::from(client) % count;
        match (step.fault, phase) {
            (
                Fault::Path {
                    client,
                    server,
                    kind,
                },
                phase,
            ) => {
                let connections = &self.connections[chosen(client)];
                match phase {
                    Phase::Begin => connections.begin(server, kind),
                    Phase::Middle => connections.advance(server, kind),
                    Phase::End => connections.end(server, kind),
                }
            }
            (Fault::StopClient(client), Phase::Begin) => {
                self.clients[chosen(client)].signal(Signal::Stop);
            }
            (Fault::StopClient(client), Phase::End) => {
                self.clients[chosen(client)].signal(Signal::Continue);
            }
            (Fault::KillClient(client), Phase::Begin) => {
                self.clients[chosen(client)].signal(Signal::Kill);
            }
            (Fault::Server(number), Phase::Begin | Phase::End) => {
                let begins = phase == Phase::Begin;
                let goes_on = self.injected.as_ref();
                if begins != goes_on.is_none() || !begins && goes_on != Some(step) {
                    return;
                }
                self.injected = begins.then(|| step.clone());
                let faults = self.testbed.harness.server_faults();
                let fault = &faults[usize::from(number) % faults.len()];
                match begins {
                    true => self.testbed.harness.inject(fault.name),
                    false => self.testbed.harness.heal(fault.name),
                }
            }
            _ => return,
        }
        self.events.push(Event::now(0, What::Fault { what }));
    }
}

/// A moment of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Begin,
    Middle,
    End,
}

fn timeline(faults: &[FaultStep], shortest_ttl: Duration) -> Vec<(Duration, Phase, &FaultStep)> {
    let steps = faults.iter().flat_map(|step| {
        let at = Duration::from_millis(step.at.into());
        let lasts = step.span(shortest_ttl);
        [
            (at, Phase::Begin, step),
            (at + lasts / 2, Phase::Middle, step),
            (at + lasts, Phase::End, step),
        ]
    });
    steps.collect()
}

impl RunningClient {
    fn in_thread(store: Arc<dyn Store>, assignment: Assignment) -> Self {
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let log = Log::new(assignment.number, SharedText(Arc::clone(&written)));
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(perform(&assignment, store, Arc::new(log)));
        };
        let thread = std::thread::Builder::new().spawn(work).expect("a thread");
        Self::Thread(thread, written)
    }

    fn signal(&mut self, signal: Signal) {
        if let Self::Process(process) = self {
            process.signal(signal);
        }
    }

    fn has_ended(&mut self) -> bool {
        match self {
            Self::Process(process) => process.has_ended(),
            Self::Thread(thread, _) => thread.is_finished(),
        }
    }

    /// Returns what the client logged. A thread that hangs is left behind.
    fn finish(self) -> Vec<Event> {
        match self {
            Self::Process(process) => process.finish(),
            Self::Thread(_, written) => {
                let text = locked(&written);
                let lines = text.split(|byte| *byte == b'\n');
                let events = lines.map_while(|line| serde_json::from_slice(line).ok());
                events.collect()
            }
        }
    }
}

struct SharedText(Arc<Mutex<Vec<u8>>>);

impl Write for SharedText {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        locked(&self.0).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn pause(span: Duration) {
    #[expect(clippy::disallowed_methods, reason = "it looks again after a while")]
    std::thread::sleep(span);
}
