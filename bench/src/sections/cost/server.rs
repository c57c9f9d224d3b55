use std::fmt;

use leasehold::blocking::Client;
use leasehold_redis::RedisStore;
use leasehold_testkit::servers::{RedisServer, Reply};
use serde::{Deserialize, Serialize};

use crate::error::Fallible;
use crate::measure::bare_keys::BareKeys;
use crate::measure::commands::CommandStats;
use crate::measure::machine::CpuTime;
use crate::report::figures::number;

/// Half of what a lock does on its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ServerCommand {
    Acquire,
    Set,
    Release,
    CompareAndDelete,
}

impl ServerCommand {
    pub(super) const ALL: [Self; 4] = [
        Self::Set,
        Self::Acquire,
        Self::CompareAndDelete,
        Self::Release,
    ];

    /// What any lock needs at least.
    pub(super) fn bound(self) -> Self {
        match self {
            Self::Acquire | Self::Set => Self::Set,
            Self::Release | Self::CompareAndDelete => Self::CompareAndDelete,
        }
    }
}

impl fmt::Display for ServerCommand {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Acquire => "acquire",
            Self::Set => "bare `SET NX PX`",
            Self::Release => "release",
            Self::CompareAndDelete => "bare compare-and-delete, a script of two calls",
        })
    }
}

/// What a command used of the server, in microseconds each time.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Use {
    pub(super) command: ServerCommand,
    pub(super) round: usize,
    /// Inside commands, as the server counts.
    pub(super) micros: f64,
    /// Of processor time, with all that commands need to come and go.
    pub(super) processor: f64,
}

/// Takes `count` locks one after the other and then gives them back, first ours, then bare keys.
pub(super) fn measure(round: usize, count: usize) -> Fallible<Vec<Use>> {
    let server = RedisServer::start();
    let client = Client::new(RedisStore::new([server.url()])?);
    // The first lock opens the connection and loads the scripts.
    client.lock("first").acquire()?.release()?;
    let mut guards = Vec::with_capacity(count);
    let used = |command, work: &mut dyn FnMut(usize) -> Fallible| {
        Use::of(command, round, &server, count, work)
    };
    let acquire = used(ServerCommand::Acquire, &mut |at| {
        guards.push(client.lock(format!("own/{at}")).acquire()?);
        Ok(())
    })?;
    let release = used(ServerCommand::Release, &mut |_| {
        guards.pop().ok_or("no guard is left")?.release()?;
        Ok(())
    })?;
    let mut bare = BareKeys::on(&[server.port()])?;
    let set = used(ServerCommand::Set, &mut |at| {
        bare.set(&format!("bare/{at}"))
    })?;
    let delete = used(ServerCommand::CompareAndDelete, &mut |at| {
        bare.delete(&format!("bare/{at}"))
    })?;
    Ok(vec![acquire, release, set, delete])
}

impl Use {
    fn of(
        command: ServerCommand,
        round: usize,
        server: &RedisServer,
        count: usize,
        work: &mut dyn FnMut(usize) -> Fallible,
    ) -> Fallible<Self> {
        server.command(&["CONFIG", "RESETSTAT"]);
        let before = CpuTime::of_process(server.pid())?;
        (0..count).try_for_each(work)?;
        let processor = CpuTime::of_process(server.pid())?.seconds_since(before) * 1e6;
        let Reply::Bulk(stats) = server.command(&["INFO", "commandstats"]) else {
            return Err("INFO".into());
        };
        Ok(Self {
            command,
            round,
            micros: micros(&stats, count) / number(count),
            processor: processor / number(count),
        })
    }
}

/// Inside all commands that clients sent. What a script calls is counted in the script's own time
/// too, so where each command calls one, scripts alone count.
fn micros(stats: &str, steps: usize) -> f64 {
    let own =
        |command: &CommandStats| !command.name.starts_with("config") && command.name != "info";
    let (scripts, plain): (Vec<_>, Vec<_>) = CommandStats::of(stats)
        .into_iter()
        .filter(own)
        .partition(CommandStats::is_script);
    let calls: f64 = scripts.iter().map(|script| script.calls).sum();
    let counted = if calls >= number(steps) {
        scripts
    } else {
        plain
    };
    counted.iter().map(|command| command.micros).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_what_a_script_calls_is_counted_once() {
        let plain =
            "cmdstat_set:calls=2,usec=10,usec_per_call=5\r\ncmdstat_info:calls=1,usec=99\r\n";
        assert!((micros(plain, 2) - 10.0).abs() < 1e-9);
        let script = "cmdstat_evalsha:calls=2,usec=30\r\ncmdstat_del:calls=2,usec=4\r\n";
        assert!((micros(script, 2) - 30.0).abs() < 1e-9);
    }
}
