//! Many waiters of one process for a lock that is not released: what they cost.

use std::thread;
use std::time::Duration;

use leasehold_testkit::servers::{RedisServer, RedisSet};
use serde::{Deserialize, Serialize};

use crate::measure::commands;
use crate::measure::machine::{CpuTime, resident};
use crate::measure::results::{Lines, Results};
use crate::measure::subject::{Program, Subject};
use crate::measure::verification::verify;
use crate::measure::worker_process::{Keys, Scenario, WorkerProcess};
use crate::options::{Options, or};
use crate::report::figures::number;
use crate::report::page::{Page, table};
use crate::sections::Section;
use crate::sections::handover;

pub(crate) const SECTION: Section = Section {
    name: "waiters",
    title: "A thousand waiters",
    measure,
    tell,
};

/// The default number of waiters.
const WAITERS: usize = 1000;

const COLUMNS: [&str; 9] = [
    "subject",
    "servers",
    "waiters",
    "commands/s and server",
    "commands per waiter and second",
    "client CPU ms/s",
    "servers' CPU ms/s",
    "client MiB",
    "KiB per waiter",
];

#[derive(Debug, Serialize, Deserialize)]
struct Run {
    subject: String,
    nodes: usize,
    waiters: usize,
    /// Sent by clients, per second and server.
    commands: f64,
    client_cpu: f64,
    server_cpu: f64,
    mib: f64,
    mib_before: f64,
}

/// Runs the subjects that wait as tasks of one Rust program and share a client.
fn measure(options: &Options, results: &mut Results) -> Result<(), String> {
    for &nodes in options.nodes() {
        for &waiters in or(&options.waiters, &[WAITERS]) {
            for subject in handover::subjects::all(nodes).filter(shares_a_client) {
                if options.wants(subject.name) {
                    eprintln!(
                        "waiters: {}, {waiters} waiters, {nodes} servers",
                        subject.name
                    );
                    results.keep(&Run::measure(&subject, nodes, waiters, options)?)?;
                } else {
                    eprintln!("left out by --only: {}", subject.name);
                }
            }
        }
    }
    Ok(())
}

fn tell(lines: &Lines, page: &mut Page) -> Result<(), String> {
    page.say(
        "One handle of a process holds the lock, and the others wait. The commands are those of the whole process, including renewals of \
         the held lock.",
    );
    let runs: Vec<Run> = lines.results()?;
    page.say(table(COLUMNS, runs.iter().map(Run::cells)));
    Ok(())
}

fn shares_a_client(subject: &Subject) -> bool {
    matches!(subject.program, Program::Own("leasehold" | "rslock"))
}

impl Run {
    fn measure(
        subject: &Subject,
        nodes: usize,
        waiters: usize,
        options: &Options,
    ) -> Result<Self, String> {
        let servers = RedisSet::start(nodes);
        let ports: Vec<u16> = servers.iter().map(RedisServer::port).collect();
        let pids: Vec<u32> = servers.iter().map(RedisServer::pid).collect();
        let scenario = Scenario {
            keys: Keys::One,
            waiters: waiters + 1,
            hold: Duration::ZERO,
            away: Duration::ZERO,
        };
        let mut worker = WorkerProcess::start(subject, &scenario, &ports)?;
        verify(subject, &mut worker, &servers)?;
        let mib_before = resident(worker.pid())?;
        worker.command("still", "waiting")?;
        let (settle, window) = options.pick((1, 3), (5, 12));
        pass(Duration::from_secs(settle));
        let usage = || {
            Ok::<_, String>((
                CpuTime::of_process(worker.pid())?,
                CpuTime::of_processes(&pids)?,
            ))
        };
        let window = Duration::from_secs(window);
        let (client, server) = usage()?;
        pass(window);
        let (client_after, server_after) = usage()?;
        let mib = resident(worker.pid())?;
        let counted = commands::count(&servers, || {
            pass(window);
            Ok(())
        });
        let ((), sent) = counted?;
        let span = window.as_secs_f64();
        Ok(Self {
            subject: subject.name.into(),
            nodes,
            waiters,
            commands: number(sent) / span / number(nodes),
            client_cpu: client_after.seconds_since(client) / span,
            server_cpu: server_after.seconds_since(server) / span,
            mib,
            mib_before,
        })
    }

    fn cells(&self) -> [String; COLUMNS.len()] {
        let waiters = number(self.waiters);
        [
            self.subject.clone(),
            self.nodes.to_string(),
            self.waiters.to_string(),
            format!("{:.1}", self.commands),
            format!("{:.3}", self.commands / waiters),
            format!("{:.1}", self.client_cpu * 1000.0),
            format!("{:.1}", self.server_cpu * 1000.0),
            format!("{:.1}", self.mib),
            format!("{:.1}", (self.mib - self.mib_before) * 1024.0 / waiters),
        ]
    }
}

/// Waits for `span` while the waiters wait.
fn pass(span: Duration) {
    thread::sleep(span); // the benchmark counts what happens in this span
}
