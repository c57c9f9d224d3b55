//! A look at a server as an operator needs it: plain facts, without a judgement.

mod census;
mod rights;

use std::time::Duration;

use leasehold::ambient::Ambient;
use leasehold::clock::WallTime;
use leasehold::{Error, Presence};

use crate::connection::{Answer, Command, Info, Rights, Visit, read_time};
use crate::member::RedisMember;
use crate::presence;
use crate::url::Address;
use crate::wire::Records;
use rights::Names;

pub use census::KeyCensus;
pub use rights::{MissingRight, Need};

/// What was found at a server, by its own word and from this machine.
///
/// What the user may not ask for is an error that names the right.
#[derive(Clone, Debug)]
pub struct Examination {
    /// What lies between this machine and the server.
    pub transport: Transport,
    /// The name of the user.
    pub user: String,
    /// What the names of locks begin with at the server.
    pub prefix: String,
    /// Whether the server tells waiters something unasked (RESP3).
    pub speaks_resp3: bool,
    /// What INFO says.
    pub server: Result<ServerFacts, Error>,
    /// What a client of locks reads of it, its card included.
    pub presence: Result<Presence, Error>,
    /// How it keeps its data.
    pub persistence: Result<Persistence, Error>,
    /// How long it took to answer the smallest request, the shortest first.
    pub round_trips: Vec<Duration>,
    /// What its clock shows beyond this machine's, in microseconds, to within half the shortest of the
    /// round trips. `None` where the user may not ask for it.
    pub clock_offset: Option<i64>,
    /// What its user lacks of the rights that this crate's front page lists.
    pub missing_rights: Vec<MissingRight>,
    /// Why it serves no locks to a user who may have them, in its own words: it takes no writes, or a
    /// command was taken from it.
    pub refuses_locks: Option<String>,
    /// The keys that locks may meet.
    pub keys: Result<KeyCensus, Error>,
}

/// What lies between this machine and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Nothing: a socket of this machine, or its loopback address.
    ThisMachine,
    /// A network, through TLS.
    Tls,
    /// A network, on which everybody on the way reads the password and the locks' names.
    PlainNetwork,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// Its version, as of Redis: Valkey says which one it is like.
    pub version: String,
    /// Whether it is a primary.
    pub is_primary: bool,
    /// Whether it is a node of a Redis Cluster.
    pub is_cluster_node: bool,
    /// How much memory it may use, in bytes; 0: no limit.
    pub max_memory: u64,
    /// What it does when that is full.
    pub eviction_policy: String,
}

/// How a server keeps its data over a restart, by its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persistence {
    /// `appendonly`.
    pub append_only: String,
    /// `appendfsync`.
    pub append_fsync: String,
    /// `no-appendfsync-on-rewrite`.
    pub no_fsync_on_rewrite: String,
    /// Whether the last write to the file went well.
    pub last_write_was_ok: bool,
    /// How many replicas it has.
    pub replicas: u64,
}

/// How often the smallest request is sent.
const ROUND_TRIPS: usize = 9;

impl RedisMember {
    /// Looks at the server: what it is, how it keeps its data, what its user lacks, what its keys are. It
    /// may be one that can be no member.
    ///
    /// Nothing is changed there: each right is asked for by a command that does nothing where it is
    /// allowed, on a name that nobody uses. (What is refused may stand in the server's `ACL LOG`.) Some
    /// thousand keys are looked at, at most.
    ///
    /// It takes as long as some fifty round trips at most, and has no limit of its own.
    ///
    /// # Errors
    ///
    /// If there is no connection, or the server does not let the user in.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the connection is its own, and is closed with it.
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
        examined.map_err(|error| self.named(error))
    }

    async fn try_examine(&self) -> Result<Examination, Error> {
        let url = self.connector.url();
        let visit = self.connector.visit().await?;
        let answers = visit.ask(&presence::questions()).await?;
        let info = presence::info(&answers, visit.user());
        let server = match &info {
            Ok(info) => ServerFacts::read(info),
            Err(error) => Err(error.clone()),
        };
        let Clocked {
            round_trips,
            clock_offset,
        } = Clocked::take(&visit, &self.ambient).await?;
        let names = unused(&url.prefix, &self.ambient);
        let keys = census::take(&visit, &url.prefix, &*self.ambient.clock).await;
        // Last of all, since it subscribes.
        let rights = rights::probe(&visit, &names, &url.prefix).await?;
        Ok(Examination {
            transport: transport(&url.address),
            user: visit.user().to_owned(),
            prefix: url.prefix.clone(),
            speaks_resp3: visit.speaks_resp3(),
            server,
            presence: presence::read(&answers, visit.user()),
            persistence: info.and_then(|info| Persistence::read(&info, &answers, visit.user())),
            round_trips,
            clock_offset,
            missing_rights: rights.missing,
            refuses_locks: rights.refuses_locks,
            keys,
        })
    }
}

/// Names of which it is as good as certain that nobody uses them.
fn unused(prefix: &str, ambient: &Ambient) -> Names {
    let lock = format!(
        "{prefix}leasehold-doctor/{:016x}",
        ambient.entropy.next_u64()
    );
    let record = Records::at(lock.as_str()).fence().concat();
    Names { lock, record }
}

fn transport(address: &Address) -> Transport {
    match address {
        Address::Unix(_) => Transport::ThisMachine,
        Address::Tcp { host, .. } if is_loopback(host) => Transport::ThisMachine,
        Address::Tcp { tls: true, .. } => Transport::Tls,
        Address::Tcp { tls: false, .. } => Transport::PlainNetwork,
    }
}

fn is_loopback(host: &str) -> bool {
    let by_number = host.parse::<std::net::IpAddr>();
    host == "localhost" || by_number.is_ok_and(|address| address.is_loopback())
}

/// What the smallest requests show.
struct Clocked {
    round_trips: Vec<Duration>,
    clock_offset: Option<i64>,
}

impl Clocked {
    async fn take(visit: &Visit, ambient: &Ambient) -> Result<Self, Error> {
        let clock = &ambient.clock;
        let mut samples = Vec::new();
        for _ in 0..ROUND_TRIPS {
            let (asked, wall) = (clock.now(), clock.wall());
            let answers = visit.ask(&[Command::new("TIME")]).await?;
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
    fn read(info: &Info, answers: &[Answer], user: &str) -> Result<Self, Error> {
        // Behind the sections of INFO: see `presence::questions`.
        let config = answers.len().checked_sub(4).and_then(|at| answers.get(at));
        if let Some(Answer::Refused(refusal)) = config {
            return Err(refusal.to_error(user, Rights("+config|get")));
        }
        let pairs = config.and_then(Answer::as_list).unwrap_or_default();
        let setting = |name: &str| {
            let mut pairs = pairs.chunks_exact(2);
            let pair = pairs.find(|pair| pair[0].as_text() == Some(name));
            let value = pair.and_then(|pair| pair[1].as_text());
            value.unwrap_or("unknown").to_owned()
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::RedisUrl;

    #[test]
    fn what_leaves_this_machine_is_told_from_what_does_not() {
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
