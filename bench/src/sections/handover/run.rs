use std::thread;
use std::time::Duration;

use leasehold_testkit::servers::RedisSet;
use serde::{Deserialize, Serialize};

use crate::error::Fallible;
use crate::measure::commands;
use crate::measure::machine::resident;
use crate::measure::record::{Record, Section};
use crate::measure::subject::Subject;
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
    /// What the figures were computed from, for the file of raw results.
    #[serde(skip_deserializing)]
    pub(super) sections_ns: Vec<Section>,
}

impl Run {
    /// Proves that the lock is real, lets the waiters contend, and measures.
    pub(super) fn measure(
        subject: &Subject,
        scenario: &Scenario,
        servers: &RedisSet,
        round: usize,
        options: &Options,
    ) -> Fallible<Self> {
        let (mut worker, seen) = WorkerProcess::start_verified(subject, scenario, servers)?;
        worker.command("start", "started")?;
        // It sleeps as long as it measures what happens meanwhile.
        thread::sleep(Duration::from_millis(options.pick(300, 600)));
        let from = worker.ask_for("mark")?;
        let before = worker.usage(servers)?;
        let window = Duration::from_millis(options.pick(1000, 2000));
        thread::sleep(window);
        let used = worker.usage(servers)?.since(&before);
        let to = worker.ask_for("mark")?;
        let counted = commands::count(servers, || {
            let from = worker.ask_for("mark")?;
            thread::sleep(Duration::from_millis(options.pick(200, 400)));
            Ok((from, worker.ask_for("mark")?))
        });
        let ((count_from, count_to), sent) = counted?;
        let client_mib = resident(worker.pid())?;
        let record: Record = worker.ask_for("finish")?;
        let figures = Figures::of(&record, scenario.waiters, from, to);
        let counted = Figures::of(&record, scenario.waiters, count_from, count_to);
        if figures.sections == 0 || counted.sections == 0 {
            let why = &record.why;
            return Err(format!("no waiter got the lock; {why}").into());
        }
        let [client_cpu, server_cpu, other_cpu] = used.map(|used| used / window.as_secs_f64());
        Ok(Self {
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
            why: record.why,
            sections_ns: record.sections,
        })
    }
}
