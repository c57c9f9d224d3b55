use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::processes::SecondProcess;

/// A client of redis-py's `Lock`, in a process of its own.
#[derive(Debug)]
pub struct RedisPy(SecondProcess);

/// The work of a process under a lock that it shares with others: it reads a counter, waits for 5 to 20 ms,
/// and writes the counter's successor.
#[derive(Clone, Copy, Debug)]
pub struct WorkPlan<'a> {
    /// The lock.
    pub name: &'a str,
    /// The key of the counter.
    pub counter: &'a str,
    /// For how long it repeats the work.
    pub span: Duration,
    /// The pause after each release of the lock.
    pub pause: Duration,
}

/// Names the Python that has the `redis` module, if it is not the one of `cargo xtask test`.
const PYTHON: &str = "LEASEHOLD_TEST_PYTHON";

impl RedisPy {
    /// Connects redis-py to the server on `port`.
    ///
    /// # Panics
    ///
    /// If redis-py is missing. The message says how to get it.
    pub fn start(port: u16) -> Self {
        let python = python();
        let has_module = Command::new(&python).args(["-c", "import redis"]).output();
        assert!(
            has_module.is_ok_and(|output| output.status.success()),
            "{} cannot `import redis`, and this test needs redis-py: run `cargo xtask test`, or \
             `python3 -m venv target/test-venv && target/test-venv/bin/pip install redis`, or set \
             {PYTHON} to a Python that has it",
            python.display()
        );
        let mut client = Command::new(python);
        client.args(["-c", include_str!("redis_py.py")]);
        Self(SecondProcess::spawn(client.arg(port.to_string())))
    }

    /// Asks once for the lock `name`, with a timeout of a minute. Returns whether it was acquired.
    pub fn acquire(&mut self, name: &str) -> bool {
        self.acquire_for(name, Duration::from_secs(60))
    }

    /// Asks once for the lock `name`, which expires after `timeout`. Returns whether it was acquired.
    pub fn acquire_for(&mut self, name: &str, timeout: Duration) -> bool {
        self.ask(&format!("acquire {name} {}", timeout.as_secs_f64())) == "True"
    }

    /// Releases the lock `name`, which it acquired.
    pub fn release(&mut self, name: &str) {
        assert_eq!(self.ask(&format!("release {name}")), "True");
    }

    /// Starts to take the lock again and again, as `work` says. redis-py waits for it as it does by
    /// default: it asks ten times a second. [`worked`](Self::worked) waits for the end.
    pub fn begin_work(&mut self, work: &WorkPlan) {
        let WorkPlan {
            name,
            counter,
            span,
            pause,
        } = work;
        let (span, pause) = (span.as_secs_f64(), pause.as_secs_f64());
        self.0
            .tell(&format!("work {name} {counter} {span} {pause}"));
    }

    /// Returns how long the work that was started waited for the lock, each time.
    pub fn worked(&mut self) -> Vec<Duration> {
        let answer = self.0.hear();
        let waits = answer.split(' ').map(|wait| wait.parse().expect("seconds"));
        waits.map(Duration::from_secs_f64).collect()
    }

    fn ask(&mut self, question: &str) -> String {
        self.0.tell(question);
        self.0.hear()
    }
}

fn python() -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "a test's way to its peer")]
    let named = std::env::var_os(PYTHON);
    named.map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-venv/bin/python"),
        PathBuf::from,
    )
}
