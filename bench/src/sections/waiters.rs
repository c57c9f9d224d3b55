//! Many waiters of one process for a lock that is not released: what they cost.

use std::thread;
use std::time::Duration;

use leasehold_testkit::servers::RedisSet;
use serde::{Deserialize, Serialize};

use crate::error::Fallible;
use crate::measure::commands;
use crate::measure::machine::resident;
use crate::measure::results::{Lines, Results};
use crate::measure::subject::{Program, Subject};
use crate::measure::worker_process::{Keys, Scenario, WorkerProcess};
use crate::options::{Options, or};
use crate::report::figures::number;
use crate::report::page::{Column, Page, table};
use crate::sections::{handover, turns};

/// The default number of waiters.
const WAITERS: usize = 1000;

const COLUMNS: [Column<Run>; 9] = [
    ("subject", |run| run.subject.clone()),
    ("servers", |run| run.nodes.to_string()),
    ("waiters", |run| run.waiters.to_string()),
    ("commands/s and server", |run| {
        format!("{:.1}", run.commands)
    }),
    ("commands per waiter and second", |run| {
        format!("{:.3}", run.commands / number(run.waiters))
    }),
    ("client CPU ms/s", |run| {
        format!("{:.1}", run.client_cpu * 1000.0)
    }),
    ("servers' CPU ms/s", |run| {
        format!("{:.1}", run.server_cpu * 1000.0)
    }),
    ("client MiB", |run| format!("{:.1}", run.mib)),
    ("KiB per waiter", |run| {
        let kib = (run.mib - run.mib_before) * 1024.0;
        format!("{:.1}", kib / number(run.waiters))
    }),
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
pub(super) fn measure(options: &Options, results: &mut Results) -> Fallible {
    for &nodes in options.nodes() {
        for &waiters in or(&options.waiters, &[WAITERS]) {
            let sharing = handover::subjects::all(nodes).filter(shares_a_client);
            for subject in turns::present(sharing, options, results)? {
                let name = subject.name;
                eprintln!("waiters: {name}, {waiters} waiters, {nodes} servers");
                results.keep(&Run::measure(&subject, nodes, waiters, options)?)?;
            }
        }
    }
    Ok(())
}

pub(super) fn write_page(lines: &Lines, page: &mut Page) -> Fallible {
    page.title("A thousand waiters");
    page.say(
        "One task of a process holds the lock, and the others wait. The commands are those of the whole process, including renewals of \
         the held lock.",
    );
    page.say(table(&COLUMNS, lines.results::<Run>()?));
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
    ) -> Fallible<Self> {
        let servers = RedisSet::start(nodes);
        let scenario = Scenario::without_pauses(Keys::One, waiters + 1);
        let (mut worker, _) = WorkerProcess::start_verified(subject, &scenario, &servers)?;
        let mib_before = resident(worker.pid())?;
        worker.command("still", "waiting")?;
        let (settle, window) = options.pick((1, 3), (5, 12));
        // It sleeps as long as it measures what happens meanwhile.
        thread::sleep(Duration::from_secs(settle));
        let window = Duration::from_secs(window);
        let before = worker.usage(&servers)?;
        thread::sleep(window);
        let [client, server, _] = worker.usage(&servers)?.since(&before);
        let mib = resident(worker.pid())?;
        let ((), sent) = commands::count(&servers, || {
            thread::sleep(window);
            Ok(())
        })?;
        let span = window.as_secs_f64();
        Ok(Self {
            subject: subject.name.into(),
            nodes,
            waiters,
            commands: number(sent) / span / number(nodes),
            client_cpu: client / span,
            server_cpu: server / span,
            mib,
            mib_before,
        })
    }
}
