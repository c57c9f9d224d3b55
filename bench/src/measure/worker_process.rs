use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use leasehold_testkit::servers::{RedisServer, RedisSet, Reply};
use serde::de::DeserializeOwned;

use crate::error::Fallible;
use crate::measure::machine::Usage;
use crate::measure::servers::Servers;
use crate::measure::subject::Subject;
use crate::peers::programs;

/// A subject at work, in its own process. It reads orders from its standard input, one per line, and
/// answers each with a line: a word, or the JSON of a type in `record.rs`.
///
/// | order | answer | |
/// |---|---|---|
/// | `take` | `taken` | one handle waits for the lock and holds it |
/// | `second` | `denied` or `granted` | another handle asks for it once |
/// | `give` | `given` | the first one gives it back |
/// | `start` | `started` | all waiters begin to contend, for good |
/// | `mark` | a number | the time on the clock that it measures with |
/// | `finish` | `Record` | |
/// | `cycle-for MS` | `Cycled` | each handle takes and frees a key of its own |
/// | `hold` | `Taken` | takes a lock for each waiter, and holds them for good |
/// | `report` | `Renewals` | how the renewals of these locks went |
///
/// It ends when its standard input does, or when this handle is dropped.
#[derive(Debug)]
pub(crate) struct WorkerProcess {
    /// For messages.
    name: &'static str,
    process: Child,
    orders: ChildStdin,
    answers: Receiver<String>,
}

/// How a worker contends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) keys: Keys,
    pub(crate) waiters: usize,
    /// How long each section lasts; of locks that are held for good, their TTL.
    pub(crate) hold: Duration,
    /// How long a waiter pauses after it releases the lock, half of that more or less.
    pub(crate) away: Duration,
}

/// What the waiters contend for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// All waiters contend for one lock.
    One,
    /// Each waiter has its own lock, without contention.
    Each,
}

/// The one lock, or the first.
const KEY: &str = "bench";

/// Maximum time to wait for an answer: enough for a lease that was left behind to expire.
const ANSWER_MAX: Duration = Duration::from_secs(60);

impl Scenario {
    /// The waiters act as fast as they can.
    pub(crate) fn without_pauses(keys: Keys, waiters: usize) -> Self {
        Self {
            keys,
            waiters,
            hold: Duration::ZERO,
            away: Duration::ZERO,
        }
    }
}

impl WorkerProcess {
    pub(crate) fn start(
        subject: &Subject,
        scenario: &Scenario,
        servers: &impl Servers,
    ) -> Fallible<Self> {
        let keys = match scenario.keys {
            Keys::One => "one",
            Keys::Each => "each",
        };
        let name = subject.name;
        let mut process = programs::command(subject.program)?
            .args([subject.settings, KEY, keys, &scenario.waiters.to_string()])
            .args([scenario.hold, scenario.away].map(|span| span.as_micros().to_string()))
            .args(servers.ports().iter().map(u16::to_string))
            .envs(servers.variables())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{name}: {error}"))?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (orders, output) = pipes.ok_or("a process without pipes")?;
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The receiver is gone once the handle is.
                let _ = sender.send(line);
            }
        });
        Ok(Self {
            name,
            process,
            orders,
            answers,
        })
    }

    /// Starts the worker, and makes sure that its subject takes a lock that is really there: the servers show
    /// its key, a second acquire is denied, and nothing is left after the release.
    pub(crate) fn start_verified(
        subject: &Subject,
        scenario: &Scenario,
        servers: &RedisSet,
    ) -> Fallible<Self> {
        let mut worker = Self::start(subject, scenario, servers)?;
        let name = subject.name;
        worker.command("take", "taken")?;
        let majority = servers.len() / 2 + 1;
        let seen = soon(|| locked(subject, servers), servers.len());
        if seen < majority {
            return Err(format!("{name}: only {seen} servers show its lock").into());
        }
        worker.command("second", "denied")?;
        worker.command("give", "given")?;
        match soon(|| locked(subject, servers), 0) {
            0 => Ok(worker),
            left => Err(format!("{name}: {left} servers still show its lock").into()),
        }
    }

    /// Starts the worker, and makes sure that its lock is real: a second acquire is denied while the first handle
    /// holds it, and granted afterwards.
    pub(crate) fn start_proven(
        subject: &Subject,
        scenario: &Scenario,
        servers: &impl Servers,
    ) -> Fallible<Self> {
        let mut worker = Self::start(subject, scenario, servers)?;
        worker.command("take", "taken")?;
        worker.command("second", "denied")?;
        worker.command("give", "given")?;
        worker.command("second", "granted")?;
        Ok(worker)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn usage(&self, servers: &impl Servers) -> Fallible<Usage> {
        Usage::now(self.pid(), &servers.pids())
    }

    /// Gives an order and returns the line that answers it.
    fn ask(&mut self, order: &str) -> Fallible<String> {
        writeln!(self.orders, "{order}")
            .map_err(|error| format!("{} takes no orders: {error}", self.name))?;
        let answer = self.answers.recv_timeout(ANSWER_MAX);
        Ok(answer.map_err(|error| format!("{} did not answer to {order}: {error}", self.name))?)
    }

    /// Gives an order that has only one right answer.
    pub(crate) fn command(&mut self, order: &str, right: &str) -> Fallible {
        match self.ask(order)? {
            answer if answer == right => Ok(()),
            answer => Err(self.nonsense(order, &answer)),
        }
    }

    /// Gives an order whose answer is a line of JSON.
    pub(crate) fn ask_for<T: DeserializeOwned>(&mut self, order: &str) -> Fallible<T> {
        let answer = self.ask(order)?;
        serde_json::from_str(&answer).map_err(|_| self.nonsense(order, &answer))
    }

    fn nonsense(&self, order: &str, answer: &str) -> Box<dyn std::error::Error + Send + Sync> {
        format!("{}: to {order} it answered {answer:?}", self.name).into()
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // An error means that it has ended already; then waiting only collects it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// On how many servers the lock is held.
fn locked(subject: &Subject, servers: &RedisSet) -> usize {
    let holds = Reply::Integer(i64::from(!subject.key_is_free()));
    let key = format!("{}{KEY}", subject.prefix);
    let is_held = |server: &&RedisServer| server.command(&["EXISTS", &key]) == holds;
    servers.iter().filter(is_held).count()
}

/// Waits for the expected number: some subjects answer at the majority, and the rest of the servers follows.
/// Returns the last number seen.
fn soon(look: impl Fn() -> usize, expected: usize) -> usize {
    let began = Instant::now();
    loop {
        let seen = look();
        if seen == expected || began.elapsed() > Duration::from_secs(3) {
            return seen;
        }
        thread::sleep(Duration::from_millis(2)); // between two checks of the condition
    }
}
