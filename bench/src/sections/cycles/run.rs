use std::time::Duration;

use leasehold_testkit::servers::RedisSet;
use serde::{Deserialize, Serialize};

use crate::error::Fallible;
use crate::measure::commands;
use crate::measure::record::Cycled;
use crate::measure::subject::Subject;
use crate::measure::worker_process::{Scenario, WorkerProcess};
use crate::options::Options;
use crate::report::figures::number;

/// One subject in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) subject: String,
    pub(super) nodes: usize,
    pub(super) in_flight: usize,
    pub(super) round: usize,
    /// How many servers showed the lock while it was held.
    pub(super) seen: usize,
    #[serde(flatten)]
    pub(super) cycled: Cycled,
    pub(super) cycles_per_second: f64,
    /// Sent by clients, per cycle and server.
    pub(super) commands: f64,
    /// Processor time, per cycle: all threads of the client, all servers.
    pub(super) client_micros: f64,
    pub(super) server_micros: f64,
    /// What other processes on this machine used, of one core.
    pub(super) other_cpu: f64,
}

/// How long a subject cycles before it is measured. The proof makes a lock busy, and Leasehold leaves the
/// plain commands alone for a second after that.
const WARM_UP: Duration = Duration::from_millis(1_250);

impl Run {
    /// Proves that the lock is real, warms up, counts commands, and measures.
    pub(super) fn measure(
        subject: &Subject,
        scenario: &Scenario,
        servers: &RedisSet,
        round: usize,
        options: &Options,
    ) -> Fallible<Self> {
        let (mut worker, seen) = WorkerProcess::start_verified(subject, scenario, servers)?;
        let _: Cycled = worker.ask_for(&format!("cycle-for {}", WARM_UP.as_millis()))?;
        let times = if scenario.waiters == 1 { 100 } else { 5 };
        let count = || worker.ask_for(&format!("cycle-times {times}"));
        let (counted, sent): (Cycled, _) = commands::count(servers, count)?;
        let before = worker.usage(servers)?;
        let span = options.pick(300, 1000);
        let mut cycled: Cycled = worker.ask_for(&format!("cycle-for {span}"))?;
        let [client, server, others] = worker.usage(servers)?.since(&before);
        if cycled.cycles == 0 || counted.cycles == 0 {
            return Err(format!("no cycle came to its end; {}", cycled.why).into());
        }
        cycled.failed += counted.failed;
        let cycles = number(cycled.cycles);
        Ok(Self {
            subject: subject.name.into(),
            nodes: servers.len(),
            in_flight: scenario.waiters,
            round,
            seen,
            cycles_per_second: cycles / cycled.seconds,
            commands: number(sent) / number(counted.cycles) / number(servers.len()),
            client_micros: client * 1e6 / cycles,
            server_micros: server * 1e6 / cycles,
            other_cpu: others / cycled.seconds,
            cycled,
        })
    }
}
