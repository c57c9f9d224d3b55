use std::fmt;

use leasehold::blocking::Client;
use leasehold_redis::RedisStore;
use leasehold_testkit::servers::{RedisServer, Reply, RespConnection};
use serde::{Deserialize, Serialize};

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
pub(super) fn measure(round: usize, count: usize) -> Result<Vec<Use>, String> {
    let server = RedisServer::start();
    let client = Client::new(RedisStore::new([server.url()]).map_err(text)?);
    // The first lock opens the connection and loads the scripts.
    let first = client.lock("first").acquire().map_err(text)?;
    first.release().map_err(text)?;
    let mut guards = Vec::with_capacity(count);
    let used = |command, work: &mut dyn FnMut(usize) -> Result<(), String>| {
        Use::of(command, round, &server, count, work)
    };
    let acquire = used(ServerCommand::Acquire, &mut |at| {
        guards.push(client.lock(format!("own/{at}")).acquire().map_err(text)?);
        Ok(())
    })?;
    let release = used(ServerCommand::Release, &mut |_| match guards.pop() {
        Some(guard) => guard.release().map(drop).map_err(text),
        None => Err("no guard is left".into()),
    })?;
    let mut bare = Bare::on(&server)?;
    let set = used(ServerCommand::Set, &mut |at| bare.set(at))?;
    let delete = used(ServerCommand::CompareAndDelete, &mut |at| bare.delete(at))?;
    Ok(vec![acquire, release, set, delete])
}

impl Use {
    fn of(
        command: ServerCommand,
        round: usize,
        server: &RedisServer,
        count: usize,
        work: &mut dyn FnMut(usize) -> Result<(), String>,
    ) -> Result<Self, String> {
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
    let commands = stats.lines().filter_map(|line| {
        let (name, figures) = line.strip_prefix("cmdstat_")?.split_once(':')?;
        let figure = |field: &str| {
            let mut figures = figures.split(',');
            let text = figures.find_map(|figure| figure.strip_prefix(field))?;
            text.parse::<f64>().ok()
        };
        Some((name, figure("calls=")?, figure("usec=")?))
    });
    let own = |name: &str| !name.starts_with("config") && name != "info";
    let (scripts, plain): (Vec<_>, Vec<_>) = commands
        .filter(|(name, ..)| own(name))
        .partition(|(name, ..)| name.starts_with("eval") || name.starts_with("fcall"));
    let calls: f64 = scripts.iter().map(|(_, calls, _)| calls).sum();
    let counted = if calls >= number(steps) {
        scripts
    } else {
        plain
    };
    counted.iter().map(|(_, _, micros)| micros).sum()
}

/// Keys as any lock has them, over a socket and nothing else.
struct Bare {
    connection: RespConnection,
    sha: String,
}

const FREE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                    return redis.call('DEL', KEYS[1]) end return 0";
const OWNER: &str = "0123456789abcdef.0123456789abcdef0123456789abcdef";

impl Bare {
    fn on(server: &RedisServer) -> Result<Self, String> {
        match server.command(&["SCRIPT", "LOAD", FREE]) {
            Reply::Bulk(sha) => Ok(Self {
                connection: server.connect(),
                sha,
            }),
            other => Err(format!("SCRIPT LOAD: {other:?}")),
        }
    }

    fn set(&mut self, at: usize) -> Result<(), String> {
        let key = format!("bare/{at}");
        let taken = Reply::Status("OK".into());
        self.call(&["SET", &key, OWNER, "NX", "PX", "30000"], &taken)
    }

    fn delete(&mut self, at: usize) -> Result<(), String> {
        let key = format!("bare/{at}");
        let sha = self.sha.clone();
        self.call(&["EVALSHA", &sha, "1", &key, OWNER], &Reply::Integer(1))
    }

    fn call(&mut self, words: &[&str], right: &Reply) -> Result<(), String> {
        match self.connection.call(words) {
            Ok(reply) if reply == *right => Ok(()),
            Ok(reply) => Err(format!("{words:?}: {reply:?}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn text(error: leasehold::Error) -> String {
    error.to_string()
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
