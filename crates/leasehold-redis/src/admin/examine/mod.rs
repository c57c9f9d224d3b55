//! Facts about a server for an operator, without a judgement.

mod census;
mod rights;

use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::env::Env;
use leasehold::member::MemberStatus;
use leasehold::{Error, Key};

use crate::admin::member::RedisMember;
use crate::codec::status::{self, setting};
use crate::codec::{Info, Names, Rights, invalid_response, read_time, refused};
use crate::connection::Probe;
use crate::resp::{CommandWriter, Value};
use crate::url::Address;
use rights::Unused;

pub use census::KeyCensus;
pub use rights::{MissingRight, Need};

/// What an examination of a server found.
///
/// A part that the user may not read is an error that names the missing right.
#[derive(Clone, Debug)]
pub struct Examination {
    /// What lies between this machine and the server.
    pub transport: Transport,
    /// The name of the user.
    pub user: String,
    /// The prefix of every lock name at the server.
    pub prefix: String,
    /// Whether the URL accepts a server that evicts locks.
    pub accepts_eviction: bool,
    /// Whether the server can notify waiters (RESP3).
    pub speaks_resp3: bool,
    /// What `INFO` reports.
    pub server: Result<ServerFacts, Error>,
    /// The status that clients of locks read, with the member record.
    pub status: Result<MemberStatus, Error>,
    /// How the server keeps its data.
    pub persistence: Result<Persistence, Error>,
    /// How long the server took to answer the smallest request, in ascending order.
    pub round_trips: Vec<Duration>,
    /// How far the server's clock is ahead of this machine's, in microseconds. The error is at most half
    /// the shortest round trip. `None` if the user may not ask for the time.
    pub clock_offset: Option<i64>,
    /// The rights from this crate's front page that the user lacks.
    pub missing_rights: Vec<MissingRight>,
    /// Why the server serves no locks even to a user with all rights, in the server's words: it accepts no
    /// writes, or it lacks a command.
    pub refuses_locks: Option<String>,
    /// The keys that locks may meet.
    pub keys: Result<KeyCensus, Error>,
}

/// What lies between this machine and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A socket of this machine, or its loopback address.
    ThisMachine,
    /// A network, through TLS.
    Tls,
    /// A network without encryption, which shows the password and the names of the locks.
    PlainNetwork,
}

/// What a server reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// The version of Redis. Valkey names a version that it is compatible with.
    pub version: String,
    /// Whether it is a primary.
    pub is_primary: bool,
    /// Whether it is a node of a Redis Cluster.
    pub is_cluster_node: bool,
    /// How much memory it may use, in bytes. 0 means no limit.
    pub max_memory: u64,
    /// What it does when its memory is full, as in `maxmemory-policy`.
    pub eviction_policy: String,
}

/// How a server is configured to keep its data across a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persistence {
    /// `appendonly`.
    pub append_only: String,
    /// `appendfsync`.
    pub append_fsync: String,
    /// `no-appendfsync-on-rewrite`.
    pub no_fsync_on_rewrite: String,
    /// Whether the last write to the file succeeded.
    pub last_write_was_ok: bool,
    /// How many replicas it has.
    pub replicas: u64,
}

/// How often the smallest request is sent.
const ROUND_TRIPS: usize = 9;

impl RedisMember {
    /// Examines the server: its version and configuration, what its user lacks, and its keys. The server
    /// need not be suitable as a member.
    ///
    /// This changes nothing there. The probe for each right is a command without effect, on an unused name.
    /// The server may write refusals to its `ACL LOG`. The scan looks at a few thousand keys at most.
    ///
    /// This takes at most about fifty round trips, without a time limit. It needs a Tokio runtime.
    ///
    /// # Errors
    ///
    /// If there is no connection, or the server does not accept the user.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection, which nothing else uses.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), leasehold::Error> {
    /// use leasehold_redis::RedisMember;
    ///
    /// let found = RedisMember::new("redis://10.0.0.1")?.examine().await?;
    /// for right in &found.missing_rights {
    ///     println!("ACL SETUSER {} {}", found.user, right.rule);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn examine(&self) -> Result<Examination, Error> {
        let examined = self.try_examine().await;
        examined.map_err(|error| self.server.named(error))
    }

    async fn try_examine(&self) -> Result<Examination, Error> {
        let (url, user, env) = (self.server.url(), self.server.user(), self.server.env());
        let mut probe = Probe::open(url, &*env.clock).await?;
        let answers = probe.ask(status::write).await?;
        let info = status::read_info(&answers, user);
        let server = match &info {
            Ok(info) => ServerFacts::read(info),
            Err(error) => Err(error.clone()),
        };
        let Clocked {
            round_trips,
            clock_offset,
        } = Clocked::take(&mut probe, env).await?;
        let names = unused(&url.prefix, env)?;
        let keys = census::take(&mut probe, user, &url.prefix, &*env.clock).await;
        // Last, since it subscribes.
        let rights = rights::probe(&mut probe, &names, &url.prefix).await?;
        Ok(Examination {
            transport: transport(&url.address),
            user: user.to_owned(),
            prefix: url.prefix.clone(),
            accepts_eviction: url.accepts_eviction,
            speaks_resp3: probe.speaks_resp3(),
            server,
            status: status::read(&answers, user),
            persistence: info.and_then(|info| Persistence::read(&info, &answers, user)),
            round_trips,
            clock_offset,
            missing_rights: rights.missing,
            refuses_locks: rights.refuses_locks,
            keys,
        })
    }
}

/// Returns random names. They are almost certainly unused.
fn unused(prefix: &str, env: &Env) -> Result<Unused, Error> {
    let name = format!("leasehold-doctor/{:016x}", env.entropy.next_u64());
    let key = Key::new(name)?;
    let names = Names::new(prefix, &key);
    Ok(Unused {
        lock: names.lock().to_owned(),
        record: names.record("fence:0"),
    })
}

fn transport(address: &Address) -> Transport {
    match address {
        Address::Unix(_) => Transport::ThisMachine,
        Address::Tcp { server, .. } if server.is_loopback() => Transport::ThisMachine,
        Address::Tcp { tls: true, .. } => Transport::Tls,
        Address::Tcp { tls: false, .. } => Transport::PlainNetwork,
    }
}

/// What the smallest requests show about the clock.
struct Clocked {
    round_trips: Vec<Duration>,
    clock_offset: Option<i64>,
}

impl Clocked {
    async fn take(probe: &mut Probe, env: &Env) -> Result<Self, Error> {
        let clock = &env.clock;
        let mut samples = Vec::new();
        for _ in 0..ROUND_TRIPS {
            let (asked, wall) = (clock.now(), clock.wall());
            let ask = |out: &mut CommandWriter<'_>| {
                out.command("TIME");
            };
            let answers = probe.ask(ask).await?;
            let (took, answered) = (clock.now().since(asked), clock.wall());
            let offset = answers
                .first()
                .and_then(read_time)
                .map(|theirs| micros(theirs) - micros(wall).midpoint(micros(answered)));
            samples.push((took, offset));
        }
        samples.sort_unstable();
        Ok(Self {
            clock_offset: samples.first().and_then(|(_, offset)| *offset),
            round_trips: samples.into_iter().map(|(took, _)| took).collect(),
        })
    }
}

fn micros(time: WallTime) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

impl ServerFacts {
    fn read(info: &Info) -> Result<Self, Error> {
        let max_memory = info.field("maxmemory").and_then(|bytes| bytes.parse().ok());
        Ok(Self {
            version: info.demand("redis_version")?.into(),
            is_primary: info.demand("role")? == "master",
            is_cluster_node: info.field("cluster_enabled") == Some("1"),
            max_memory: max_memory.unwrap_or(0),
            eviction_policy: info.field("maxmemory_policy").unwrap_or("unknown").into(),
        })
    }
}

impl Persistence {
    fn read(info: &Info, answers: &[Value], user: &str) -> Result<Self, Error> {
        let config = status::config_of(answers).ok_or_else(|| invalid_response("CONFIG"))?;
        if let Value::Error { code, message } = config {
            return Err(refused(code, message, user, Rights("+config|get")));
        }
        let setting = |name: &str| setting(config, name).unwrap_or("unknown").to_owned();
        let enabled = info.field("aof_enabled") == Some("1");
        let replicas = info.field("connected_slaves");
        Ok(Self {
            append_only: setting("appendonly"),
            append_fsync: setting("appendfsync"),
            no_fsync_on_rewrite: setting("no-appendfsync-on-rewrite"),
            last_write_was_ok: !enabled || info.field("aof_last_write_status") == Some("ok"),
            replicas: replicas.and_then(|count| count.parse().ok()).unwrap_or(0),
        })
    }
}

/// Reads replies as those to an examination, for the fuzz target.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_all(values: &[Value]) {
    let user = "ann";
    if let Ok(info) = status::read_info(values, user) {
        let _ = (info.check(), ServerFacts::read(&info));
        let _ = Persistence::read(&info, values, user);
    }
    let _ = status::read(values, user);
    rights::read_all(values);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::RedisUrl;

    #[test]
    fn loopback_and_sockets_stay_on_this_machine() {
        let of = |url: &str| transport(&RedisUrl::parse(url).unwrap().address);
        for url in [
            "redis://127.0.0.1",
            "redis://127.8.8.8",
            "redis://[::1]",
            "redis://localhost",
            "unix:///run/redis.sock",
            "rediss://localhost",
        ] {
            assert_eq!(of(url), Transport::ThisMachine, "{url}");
        }
        assert_eq!(of("rediss://db.example"), Transport::Tls);
        for url in [
            "redis://10.0.0.1",
            "redis://db.example",
            "redis://[fd00::1]",
        ] {
            assert_eq!(of(url), Transport::PlainNetwork, "{url}");
        }
    }
}
