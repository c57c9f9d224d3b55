use std::process::Command;
use std::time::{Duration, Instant};

use leasehold_testkit::servers::{RedisServer, RedisSet, Reply};
use serde::{Deserialize, Serialize};

use super::worker::{Taken, VERB, Watch};
use crate::measure::line_process::LineProcess;
use crate::measure::machine::CpuTime;
use crate::options::Options;
use crate::report::figures::number;

/// A number of locks, held for longer than their TTL.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) locks: usize,
    pub(super) nodes: usize,
    pub(super) round: usize,
    /// In seconds.
    pub(super) ttl: f64,
    pub(super) taken_in: f64,
    /// Of one core, while the locks are held.
    pub(super) client_cpu: f64,
    pub(super) server_cpu: f64,
    /// Resident memory of the client.
    pub(super) bytes_per_lock: f64,
    /// For each second, on all servers: scripts that were called, ...
    pub(super) scripts: Vec<f64>,
    /// ... and commands that were executed, those of scripts too.
    pub(super) commands: Vec<f64>,
    pub(super) watch: Watch,
}

impl Run {
    pub(super) fn measure(
        locks: usize,
        nodes: usize,
        round: usize,
        options: &Options,
    ) -> Result<Self, String> {
        let servers = RedisSet::start(nodes);
        // Each lock is renewed several times.
        let (ttl, seconds) = options.pick((6_u64, 8_usize), (30, 33));
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(own);
        command
            .args([VERB, &locks.to_string(), &ttl.to_string()])
            .args(servers.urls());
        // The locks end with their servers.
        let worker = LineProcess::start("the holder", &mut command)?;
        let (taken, usage, watch) = watch(worker, &servers, seconds)?;
        let span = number(usage.commands.len());
        Ok(Self {
            locks,
            nodes,
            round,
            ttl: Duration::from_secs(ttl).as_secs_f64(),
            taken_in: taken.seconds,
            client_cpu: usage.client / span,
            server_cpu: usage.servers / span,
            bytes_per_lock: (taken.resident - taken.resident_before) * 1024.0 * 1024.0
                / number(locks),
            scripts: usage.scripts,
            commands: usage.commands,
            watch,
        })
    }
}

/// What was used, in seconds of processor time, and what the servers did in each second.
#[derive(Debug)]
struct Usage {
    client: f64,
    servers: f64,
    scripts: Vec<f64>,
    commands: Vec<f64>,
}

fn watch(
    mut worker: LineProcess,
    servers: &RedisSet,
    seconds: usize,
) -> Result<(Taken, Usage, Watch), String> {
    let taken = worker.answer("its start")?;
    let taken: Taken = serde_json::from_str(&taken).map_err(|error| format!("{taken}: {error}"))?;
    let pids: Vec<u32> = servers.iter().map(RedisServer::pid).collect();
    let (client, servers_before) = (
        CpuTime::of_process(worker.pid())?,
        CpuTime::of_processes(&pids)?,
    );
    let mut usage = Usage {
        client: 0.0,
        servers: 0.0,
        scripts: Vec::new(),
        commands: Vec::new(),
    };
    let mut before = Done::by(servers)?;
    let mut next = Instant::now();
    for _ in 0..seconds {
        next += Duration::from_secs(1);
        // One figure for each second.
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let now = Done::by(servers)?;
        usage.scripts.push(number(now.scripts - before.scripts));
        usage.commands.push(number(now.commands - before.commands));
        before = now;
    }
    usage.client = CpuTime::of_process(worker.pid())?.seconds_since(client);
    usage.servers = CpuTime::of_processes(&pids)?.seconds_since(servers_before);
    let watched = worker.ask("report")?;
    let watched = serde_json::from_str(&watched).map_err(|error| format!("{watched}: {error}"))?;
    Ok((taken, usage, watched))
}

/// What servers have done since they began.
#[derive(Debug)]
struct Done {
    scripts: usize,
    commands: usize,
}

impl Done {
    fn by(servers: &RedisSet) -> Result<Self, String> {
        let mut all = Self {
            scripts: 0,
            commands: 0,
        };
        for server in servers.iter() {
            let Reply::Bulk(stats) = server.command(&["INFO", "stats", "commandstats"]) else {
                return Err("INFO".into());
            };
            let own = Self::of(&stats).ok_or_else(|| format!("INFO: {stats}"))?;
            all.scripts += own.scripts;
            all.commands += own.commands;
        }
        Ok(all)
    }

    fn of(stats: &str) -> Option<Self> {
        let field = |name: &str| stats.lines().find_map(|line| line.strip_prefix(name));
        let calls = |name: &str| {
            let text = field(name)?.strip_prefix("calls=")?;
            text.split(',').next()?.parse::<usize>().ok()
        };
        let names = ["evalsha", "eval", "fcall"];
        Some(Self {
            scripts: names
                .iter()
                .filter_map(|name| calls(&format!("cmdstat_{name}:")))
                .sum(),
            commands: field("total_commands_processed:")?.trim().parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_told_from_what_they_call() {
        let stats = "total_commands_processed:12\r\n\r\ncmdstat_evalsha:calls=3,usec=9\r\n\
                     cmdstat_pexpire:calls=9,usec=1\r\n";
        let done = Done::of(stats).unwrap();
        assert_eq!((done.scripts, done.commands), (3, 12));
        assert!(Done::of("x:1").is_none());
    }
}
