use std::thread;
use std::time::Duration;

use leasehold_testkit::servers::{RedisServer, RedisSet};
use serde::{Deserialize, Serialize};

use crate::measure::commands;
use crate::measure::machine::{CpuTime, resident};
use crate::measure::record::{Record, Section};
use crate::measure::subject::Subject;
use crate::measure::verification::verify;
use crate::measure::worker_process::{Scenario, WorkerProcess};
use crate::options::Options;
use crate::report::figures::{Figures, number};

/// One subject in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) subject: String,
    pub(super) nodes: usize,
    pub(super) waiters: usize,
    pub(super) round: usize,
    /// How many servers showed the lock while it was held.
    pub(super) seen: usize,
    #[serde(flatten)]
    pub(super) figures: Figures,
    /// Sent by clients, for each section and server.
    pub(super) commands: f64,
    /// Of one core, over all threads.
    pub(super) client_cpu: f64,
    /// Of one core, over all servers.
    pub(super) server_cpu: f64,
    /// What other processes on this machine used, of one core.
    pub(super) other_cpu: f64,
    pub(super) client_mib: f64,
    pub(super) gave_up: u64,
    pub(super) why: String,
}

/// The same with what it was computed from, for the file of raw results.
#[derive(Debug, Serialize)]
pub(super) struct Raw<'a> {
    #[serde(flatten)]
    run: &'a Run,
    sections_ns: &'a [Section],
}

impl Run {
    /// Proves that the lock is real, lets the waiters contend, and measures.
    pub(super) fn measure(
        subject: &Subject,
        scenario: &Scenario,
        servers: &RedisSet,
        round: usize,
        options: &Options,
    ) -> Result<(Self, Record), String> {
        let ports: Vec<u16> = servers.iter().map(RedisServer::port).collect();
        let mut worker = WorkerProcess::start(subject, scenario, &ports)?;
        let seen = verify(subject, &mut worker, servers)?;
        worker.command("start", "started")?;
        pass(Duration::from_millis(options.pick(300, 600)));
        let from = worker.mark()?;
        let before = Usage::now(&worker, servers)?;
        pass(window(options));
        let after = Usage::now(&worker, servers)?;
        let to = worker.mark()?;
        let counted = commands::count(servers, || {
            let from = worker.mark()?;
            pass(Duration::from_millis(options.pick(200, 400)));
            Ok((from, worker.mark()?))
        });
        let ((count_from, count_to), sent) = counted?;
        let client_mib = resident(worker.pid())?;
        let record = worker.finish()?;
        let figures = Figures::of(&record, scenario.waiters, from, to);
        let counted = Figures::of(&record, scenario.waiters, count_from, count_to);
        if figures.sections == 0 || counted.sections == 0 {
            let why = &record.why;
            return Err(format!("{}: no waiter got the lock; {why}", subject.name));
        }
        let [client_cpu, server_cpu, other_cpu] = after.since(&before, options);
        let run = Self {
            subject: subject.name.into(),
            nodes: servers.len(),
            waiters: scenario.waiters,
            round,
            seen,
            figures,
            commands: number(sent) / number(counted.sections) / number(servers.len()),
            client_cpu,
            server_cpu,
            other_cpu,
            client_mib,
            gave_up: record.gave_up,
            why: record.why.clone(),
        };
        Ok((run, record))
    }

    pub(super) fn with_sections<'a>(&'a self, record: &'a Record) -> Raw<'a> {
        Raw {
            run: self,
            sections_ns: &record.sections,
        }
    }
}

/// Processor time used so far.
#[derive(Debug)]
struct Usage {
    client: CpuTime,
    servers: CpuTime,
    machine: CpuTime,
}

impl Usage {
    fn now(worker: &WorkerProcess, servers: &RedisSet) -> Result<Self, String> {
        let pids: Vec<u32> = servers.iter().map(RedisServer::pid).collect();
        Ok(Self {
            client: CpuTime::of_process(worker.pid())?,
            servers: CpuTime::of_processes(&pids)?,
            machine: CpuTime::of_machine()?,
        })
    }

    /// Of one core: the client, the servers, and other processes.
    fn since(&self, earlier: &Self, options: &Options) -> [f64; 3] {
        let span = window(options).as_secs_f64();
        let client = self.client.seconds_since(earlier.client) / span;
        let servers = self.servers.seconds_since(earlier.servers) / span;
        let machine = self.machine.seconds_since(earlier.machine) / span;
        [client, servers, (machine - client - servers).max(0.0)]
    }
}

/// How long a subject is measured.
fn window(options: &Options) -> Duration {
    Duration::from_millis(options.pick(1000, 2000))
}

/// Waits for `span` while the subject works.
fn pass(span: Duration) {
    thread::sleep(span); // the benchmark counts what happens in this span
}
