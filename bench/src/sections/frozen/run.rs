use std::process::Command;
use std::time::Duration;

use leasehold_testkit::servers::{RedisServer, RedisSet};
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::worker::{VERB, WorkerTask};
use crate::measure::line_process::LineProcess;
use crate::options::Options;

/// A subject in one round.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) condition: Condition,
    pub(super) in_flight: usize,
    pub(super) round: usize,
    #[serde(flatten)]
    pub(super) seen: Seen,
}

/// What a worker measured from the start of the condition.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) cycles_per_second: f64,
    /// Of acquires, in microseconds.
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// Includes acquires that had not returned by the end.
    pub(super) longest: f64,
    /// Acquires and releases that ended in an error.
    pub(super) failed: usize,
}

impl std::ops::Deref for Run {
    type Target = Seen;

    fn deref(&self) -> &Seen {
        &self.seen
    }
}

impl Run {
    pub(super) fn is(&self, name: &str, condition: Condition, in_flight: usize) -> bool {
        self.name == name && self.condition == condition && self.in_flight == in_flight
    }

    pub(super) fn measure(
        name: &str,
        condition: Condition,
        in_flight: usize,
        round: usize,
        options: &Options,
    ) -> Result<Self, String> {
        // Fresh servers for each run, so that nothing is left of the run before.
        let servers = RedisSet::start(5);
        let task = WorkerTask {
            subject: name.into(),
            in_flight,
            warm_up: Duration::from_millis(options.pick(200, 400)),
            window: Duration::from_millis(options.pick(1500, 3000)),
            urls: servers.urls(),
        };
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let task = serde_json::to_string(&task).map_err(|error| error.to_string())?;
        let worker = LineProcess::start(name, Command::new(own).args([VERB, &task]))?;
        let seen = Self::watch(worker, condition, &servers[4]);
        Ok(Self {
            name: name.into(),
            condition,
            in_flight,
            round,
            seen: seen?,
        })
    }

    fn watch(
        mut worker: LineProcess,
        condition: Condition,
        server: &RedisServer,
    ) -> Result<Seen, String> {
        let ready = worker.answer("its start")?;
        if ready != "ready" {
            return Err(ready);
        }
        let _spell = condition.begin(server);
        let text = worker.ask("go")?;
        serde_json::from_str(&text).map_err(|error| format!("{text}: {error}"))
    }
}
