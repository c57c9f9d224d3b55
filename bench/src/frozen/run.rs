use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use leasehold_testkit::servers::{RedisServer, RedisSet};
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::worker::{Order, VERB};
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

/// What a worker has seen from when the condition began.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) cycles_per_second: f64,
    /// Of acquires, in microseconds.
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// Those that had not returned by the end too.
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
        // Of its own for each run, so that nothing is left of the one before.
        let servers = RedisSet::start(5);
        let order = Order {
            subject: name.into(),
            in_flight,
            warm_up: Duration::from_millis(options.pick(200, 400)),
            window: Duration::from_millis(options.pick(1500, 3000)),
            urls: servers.urls(),
        };
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut worker = Command::new(own)
            .arg(VERB)
            .arg(serde_json::to_string(&order).map_err(|error| error.to_string())?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let seen = Self::talk(&mut worker, condition, &servers[4]);
        // It has nothing more to say.
        let _ = worker.kill();
        let _ = worker.wait();
        Ok(Self {
            name: name.into(),
            condition,
            in_flight,
            round,
            seen: seen?,
        })
    }

    fn talk(
        worker: &mut std::process::Child,
        condition: Condition,
        server: &RedisServer,
    ) -> Result<Seen, String> {
        let pipes = worker.stdin.take().zip(worker.stdout.take());
        let (mut orders, output) = pipes.ok_or("a worker without pipes")?;
        let mut answers = BufReader::new(output).lines();
        let mut answer = || match answers.next() {
            Some(Ok(line)) => Ok(line),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the worker ended".to_owned()),
        };
        let ready = answer()?;
        if ready != "ready" {
            return Err(ready);
        }
        let _spell = condition.begin(server);
        writeln!(orders, "go").map_err(|error| error.to_string())?;
        let text = answer()?;
        serde_json::from_str(&text).map_err(|error| format!("{text}: {error}"))
    }
}
