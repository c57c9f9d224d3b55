use std::str::FromStr;
use std::time::Duration;

use leasehold_testkit::servers::{RedisServer, RedisSet};
use serde::{Deserialize, Serialize};

use crate::measure::commands;
use crate::measure::machine::CpuTime;
use crate::measure::subject::Subject;
use crate::measure::verification::verify;
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
    pub(super) cycles: usize,
    pub(super) cycles_per_second: f64,
    /// In microseconds, as are those below.
    pub(super) acquire_p50: f64,
    pub(super) acquire_p99: f64,
    pub(super) cycle_p50: f64,
    pub(super) cycle_p99: f64,
    /// Sent by clients, per cycle and server.
    pub(super) commands: f64,
    /// Processor time, per cycle: all threads of the client, all servers.
    pub(super) client_micros: f64,
    pub(super) server_micros: f64,
    /// What other processes on this machine used, of one core.
    pub(super) other_cpu: f64,
    pub(super) failed: usize,
    pub(super) why: String,
}

/// What a worker answers to an order to cycle.
#[derive(Debug, PartialEq)]
struct Cycled {
    cycles: usize,
    seconds: f64,
    /// Acquires' p50 and p99, then those of whole cycles.
    micros: [f64; 4],
    failed: usize,
    why: String,
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
    ) -> Result<Self, String> {
        let ports: Vec<u16> = servers.iter().map(RedisServer::port).collect();
        let pids: Vec<u32> = servers.iter().map(RedisServer::pid).collect();
        let mut worker = WorkerProcess::start(subject, scenario, &ports)?;
        let seen = verify(subject, &mut worker, servers)?;
        cycle(&mut worker, &format!("cycle-for {}", WARM_UP.as_millis()))?;
        let times = if scenario.waiters == 1 { 100 } else { 5 };
        let counting = || cycle(&mut worker, &format!("cycle-times {times}"));
        let (counted, sent) = commands::count(servers, counting)?;
        let usage = |pid: u32| {
            Ok::<_, String>([
                CpuTime::of_process(pid)?,
                CpuTime::of_processes(&pids)?,
                CpuTime::of_machine()?,
            ])
        };
        let before = usage(worker.pid())?;
        let cycled = cycle(
            &mut worker,
            &format!("cycle-for {}", options.pick(300, 1000)),
        )?;
        let after = usage(worker.pid())?;
        if cycled.cycles == 0 || counted.cycles == 0 {
            return Err(format!(
                "{}: no cycle came to its end; {}",
                subject.name, cycled.why
            ));
        }
        let [client, server, machine] =
            [0, 1, 2].map(|part| after[part].seconds_since(before[part]));
        let [acquire_p50, acquire_p99, cycle_p50, cycle_p99] = cycled.micros;
        let cycles = number(cycled.cycles);
        Ok(Self {
            subject: subject.name.into(),
            nodes: servers.len(),
            in_flight: scenario.waiters,
            round,
            seen,
            cycles: cycled.cycles,
            cycles_per_second: cycles / cycled.seconds,
            acquire_p50,
            acquire_p99,
            cycle_p50,
            cycle_p99,
            commands: number(sent) / number(counted.cycles) / number(servers.len()),
            client_micros: client * 1e6 / cycles,
            server_micros: server * 1e6 / cycles,
            other_cpu: ((machine - client - server) / cycled.seconds).max(0.0),
            failed: cycled.failed + counted.failed,
            why: cycled.why,
        })
    }
}

fn cycle(worker: &mut WorkerProcess, order: &str) -> Result<Cycled, String> {
    let answer = worker.ask(order)?;
    Cycled::parse(&answer).ok_or_else(|| format!("to {order} a subject answered {answer:?}"))
}

impl Cycled {
    /// As `worker/cycle.rs` writes it.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("cycled ")?.split_whitespace();
        let cycles = next(&mut words)?;
        let micros: f64 = next(&mut words)?;
        let mut figure = || next(&mut words);
        let figures = [figure()?, figure()?, figure()?, figure()?];
        Some(Self {
            cycles,
            seconds: micros / 1e6,
            micros: figures,
            failed: next(&mut words)?,
            why: words.collect::<Vec<_>>().join(" "),
        })
    }
}

fn next<T: FromStr>(words: &mut std::str::SplitWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_apart() {
        let cycled = Cycled {
            cycles: 10,
            seconds: 0.5,
            micros: [1.5, 2.0, 3.0, 4.0],
            failed: 1,
            why: "too busy".into(),
        };
        let line = "cycled 10 500000 1.5 2.0 3 4 1 too busy";
        assert_eq!(Cycled::parse(line), Some(cycled));
        assert_eq!(Cycled::parse("cycled 10 500000 1.5"), None);
        assert_eq!(Cycled::parse("granted"), None);
    }
}
