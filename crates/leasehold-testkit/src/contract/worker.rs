//! The other processes of the contract suite: the test program starts itself again, as a worker.

#![expect(
    clippy::print_stdout,
    reason = "a worker talks to its test through a pipe"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use leasehold::Client;

use crate::harness::Suite;
use crate::programs::{self, WORKER_ARG};

/// Runs the worker and returns `true` if this process was started as one.
pub(crate) fn run_if_worker(suites: &[Suite]) -> bool {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() != Some(WORKER_ARG) {
        return false;
    }
    let args: Vec<String> = args.collect();
    let [suite, address, job, rest @ ..] = args.as_slice() else {
        panic!("a worker needs a suite, an address and a job: {args:?}")
    };
    let suite = suites
        .iter()
        .find(|known| known.name == suite)
        .expect("a suite of this program");
    let open_at = suite.open_at.expect("locks that other processes can reach");
    if job == programs::JOB {
        programs::run_client(open_at, address);
        return true;
    }
    let client = Client::new(open_at(address));
    match (job.as_str(), rest) {
        ("hold", [key, ttl]) => hold(&client, key, millis(ttl)),
        ("count", [key, counter, sections]) => {
            count(
                &client,
                key,
                Path::new(counter),
                sections.parse().expect("a number"),
            );
        }
        _ => panic!("unknown job: {args:?}"),
    }
    true
}

fn millis(text: &str) -> Duration {
    Duration::from_millis(text.parse().expect("milliseconds"))
}

/// Takes the lock, prints its fence, and holds it until its input ends.
fn hold(client: &Client, key: &str, ttl: Duration) {
    pollster::block_on(async {
        let guard = client.lock(key).ttl(ttl).acquire().await.expect("the lock");
        println!("{}", guard.fence());
        std::io::stdout().flush().expect("a reader");
        let _ = std::io::stdin().read(&mut [0]);
        guard.release().await.expect("a release");
    });
}

/// Adds one to the number in a plain file, `sections` times, each time under the lock. Prints the fence of
/// each section.
fn count(client: &Client, key: &str, counter: &Path, sections: u32) {
    pollster::block_on(async {
        for _ in 0..sections {
            let guard = client.lock(key).acquire().await.expect("the lock");
            let number: u64 = std::fs::read_to_string(counter)
                .expect("the counter")
                .trim()
                .parse()
                .expect("a number");
            // Appends a line to another file: the order of sections, to compare with the order of fences.
            let mut log = std::fs::File::options()
                .append(true)
                .open(counter.with_extension("fences"))
                .expect("the log");
            writeln!(log, "{}", guard.fence()).expect("a line");
            std::fs::write(counter, (number + 1).to_string()).expect("the counter");
            guard.release().await.expect("a release");
        }
    });
}

/// A worker that is running.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts a worker that holds `key`, and waits until it does. Also returns its fence.
    pub(crate) fn holding(suite: &str, address: &str, key: &str, ttl: Duration) -> (Self, u64) {
        let ttl = ttl.as_millis().to_string();
        let mut worker = Self::start(suite, address, &["hold", key, &ttl]);
        let mut line = String::new();
        worker
            .stdout
            .read_line(&mut line)
            .expect("a line of the worker");
        let fence = line
            .trim()
            .parse()
            .unwrap_or_else(|_| panic!("a fence, not {line:?}"));
        (worker, fence)
    }

    /// Starts a worker that counts in the file `counter`.
    pub(crate) fn counting(
        suite: &str,
        address: &str,
        key: &str,
        counter: &Path,
        sections: u32,
    ) -> Self {
        let counter = counter.to_str().expect("a path in UTF-8");
        Self::start(
            suite,
            address,
            &["count", key, counter, &sections.to_string()],
        )
    }

    fn start(suite: &str, address: &str, job: &[&str]) -> Self {
        let program = std::env::current_exe().expect("the path of this program");
        let mut child = Command::new(program)
            .args([WORKER_ARG, suite, address])
            .args(job)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a worker");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        Self {
            child,
            stdin,
            stdout,
        }
    }

    /// Closes the worker's input, and waits until the worker ends.
    pub(crate) fn finish(mut self) {
        drop(self.stdin.take());
        let status = self.child.wait().expect("the worker's end");
        assert!(status.success(), "the worker failed: {status}");
    }

    /// Kills the worker as in a crash: with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("the worker's end");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // This matters only after a failed test: a worker that finished is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
