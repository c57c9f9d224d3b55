use std::io;
use std::thread;

use leasehold_testkit::servers::{RedisServer, RedisSet, Reply, RespConnection};

use crate::error::Fallible;

/// Counts the commands that clients send to all `servers` while `work` runs.
///
/// By MONITOR, which says of each command whether a script called it: the server's own counters do
/// not tell the two apart. It costs the server time, so nothing else is measured meanwhile.
pub(crate) fn count<T>(
    servers: &RedisSet,
    work: impl FnOnce() -> Fallible<T>,
) -> Fallible<(T, usize)> {
    let failed = |error: io::Error| format!("MONITOR: {error}");
    let monitors = servers.iter().map(monitor).collect::<io::Result<Vec<_>>>();
    let monitors = monitors.map_err(failed)?;
    thread::scope(|scope| {
        let counting: Vec<_> = monitors
            .into_iter()
            .map(|connection| scope.spawn(|| count_until_end(connection)))
            .collect();
        let outcome = work();
        for server in servers.iter() {
            server.command(&["ECHO", END]);
        }
        let counts = counting.into_iter().map(|count| match count.join() {
            Ok(count) => count.map_err(failed),
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let count = counts.sum::<Result<usize, String>>()?;
        Ok((outcome?, count))
    })
}

/// A line of INFO commandstats.
#[derive(Clone, Debug)]
pub(crate) struct CommandStats {
    pub(crate) name: String,
    pub(crate) calls: f64,
    pub(crate) micros: f64,
}

impl CommandStats {
    /// Those of all commands, from lines as `cmdstat_set:calls=2,usec=10,usec_per_call=5`.
    pub(crate) fn of(info: &str) -> Vec<Self> {
        let parse = |line: &str| {
            let (name, figures) = line.strip_prefix("cmdstat_")?.split_once(':')?;
            let figure = |field: &str| {
                let mut figures = figures.split(',');
                let text = figures.find_map(|figure| figure.strip_prefix(field))?;
                text.parse::<f64>().ok()
            };
            Some(Self {
                name: name.to_owned(),
                calls: figure("calls=")?,
                micros: figure("usec=")?,
            })
        };
        info.lines().filter_map(parse).collect()
    }

    pub(crate) fn is_script(&self) -> bool {
        self.name.starts_with("eval") || self.name.starts_with("fcall")
    }
}

/// What ends the counting of a server, as its last command.
const END: &str = "leasehold-bench-counted";

fn monitor(server: &RedisServer) -> io::Result<RespConnection> {
    let mut connection = server.connect();
    match connection.call(&["MONITOR"])? {
        Reply::Status(status) if status == "OK" => Ok(connection),
        other => Err(io::Error::other(format!("{other:?}"))),
    }
}

fn count_until_end(mut connection: RespConnection) -> io::Result<usize> {
    let mut count = 0;
    loop {
        match connection.receive()? {
            Reply::Status(line) if line.contains(END) => return Ok(count),
            Reply::Status(line) => count += usize::from(is_sent(&line)),
            other => return Err(io::Error::other(format!("{other:?}"))),
        }
    }
}

/// `1700000000.000001 [0 127.0.0.1:5000] "GET" "k"`; of a script, `[0 lua]`.
fn is_sent(line: &str) -> bool {
    let origin = line
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    origin.is_some_and(|(origin, _)| !origin.ends_with(" lua"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_calls_was_not_sent() {
        assert!(is_sent("1.2 [0 127.0.0.1:5000] \"EVAL\" \"x lua]\" \"0\""));
        assert!(is_sent("1.2 [0 unix:/tmp/s] \"GET\" \"k\""));
        assert!(!is_sent("1.2 [0 lua] \"GET\" \"k\""));
    }

    #[test]
    fn commands_of_clients_are_counted_on_all_redis_servers() {
        let servers = RedisSet::start(2);
        let sent = || {
            servers[0].command(&["SET", "k", "v"]);
            servers[1].command(&["EVAL", "return redis.call('GET', KEYS[1])", "1", "k"]);
            Ok("done")
        };
        assert_eq!(count(&servers, sent).unwrap(), ("done", 2));
    }
}
