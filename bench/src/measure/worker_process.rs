use std::time::Duration;

use crate::measure::line_process::LineProcess;
use crate::measure::peers;
use crate::measure::record::Record;
use crate::measure::subject::Subject;

/// A subject at work, in its own process. It reads orders from its standard input, one per line, and
/// answers each with a line:
///
/// | order | answer | |
/// |---|---|---|
/// | `take` | `taken` | one handle waits for the lock and holds it |
/// | `second` | `denied` or `granted` | another handle asks for it once |
/// | `give` | `given` | the first one gives it back |
/// | `start` | `started` | all waiters begin to contend, for good |
/// | `mark` | `mark N` | the time on the clock that it measures with |
/// | `finish` | what it recorded (`record.rs`), then `finished` | |
/// | `still` | `waiting` | one handle holds the lock for good, and the others wait |
/// | `cycle-for MS`, `cycle-times N` | `cycled …` (`worker/cycle.rs`) | each handle takes and frees a key of its own |
///
/// It ends when its standard input does, or when this handle is dropped.
#[derive(Debug)]
pub(crate) struct WorkerProcess(LineProcess);

/// How a worker contends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) keys: Keys,
    pub(crate) waiters: usize,
    /// How long each section lasts.
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
pub(crate) const KEY: &str = "bench";

impl Keys {
    fn word(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Each => "each",
        }
    }
}

impl WorkerProcess {
    pub(crate) fn start(
        subject: &Subject,
        scenario: &Scenario,
        ports: &[u16],
    ) -> Result<Self, String> {
        let mut command = peers::command(subject.program)?;
        command
            .args([subject.settings, KEY])
            .args([scenario.keys.word(), &scenario.waiters.to_string()])
            .args([scenario.hold, scenario.away].map(|span| span.as_micros().to_string()))
            .args(ports.iter().map(ToString::to_string));
        LineProcess::start(subject.name, &mut command).map(Self)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Gives an order and returns the line that answers it.
    pub(crate) fn ask(&mut self, order: &str) -> Result<String, String> {
        self.0.ask(order)
    }

    /// Gives an order that has only one right answer.
    pub(crate) fn command(&mut self, order: &str, right: &str) -> Result<(), String> {
        let answer = self.ask(order)?;
        if answer == right {
            Ok(())
        } else {
            let name = self.0.name();
            Err(format!(
                "{name}: to {order} it answered {answer:?}, not {right:?}"
            ))
        }
    }

    /// The time on the worker's clock.
    pub(crate) fn mark(&mut self) -> Result<u64, String> {
        let answer = self.ask("mark")?;
        let instant = answer
            .strip_prefix("mark ")
            .and_then(|text| text.parse().ok());
        instant.ok_or_else(|| format!("{}: to mark it answered {answer:?}", self.0.name()))
    }

    pub(crate) fn finish(&mut self) -> Result<Record, String> {
        let mut record = Record::default();
        let mut line = self.ask("finish")?;
        while record.take(&line)? {
            line = self.0.answer("finish")?;
        }
        Ok(record)
    }
}
