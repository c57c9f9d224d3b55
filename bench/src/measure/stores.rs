use std::fs;
use std::panic;
use std::path::Path;

use leasehold_testkit::servers::{EtcdServer, EtcdSet, PostgresServer, Zookeeper};

use crate::error::Fallible;
use crate::measure::servers::Servers;

/// A store that is measured: on one server, unless its variant says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Postgres,
    /// Each commit waits for the disk.
    DurablePostgres,
    Etcd,
    /// Three members; the client talks to a follower.
    EtcdMembers,
    Zookeeper,
}

/// Its server or servers.
#[derive(Debug)]
pub(crate) enum StoreServer {
    Postgres(Box<PostgresServer>),
    Etcd {
        members: EtcdSet,
        /// The member that the client talks to.
        used: usize,
    },
    Zookeeper(Zookeeper),
}

impl Store {
    pub(crate) const ALL: [Self; 5] = [
        Self::Postgres,
        Self::DurablePostgres,
        Self::Etcd,
        Self::EtcdMembers,
        Self::Zookeeper,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::DurablePostgres => "PostgreSQL that waits for the disk",
            Self::Etcd => "etcd",
            Self::EtcdMembers => "etcd, a follower of three members",
            Self::Zookeeper => "ZooKeeper",
        }
    }

    /// Starts a server, or returns why that is impossible here.
    pub(crate) fn try_start(self) -> Result<StoreServer, String> {
        // The servers of the tests panic, with a text that says what to install.
        panic::catch_unwind(|| self.start()).map_err(|payload| {
            let text = payload.downcast_ref::<String>().cloned();
            text.unwrap_or_else(|| "its server does not start".into())
        })
    }

    /// Starts a server as the tests do.
    pub(crate) fn start(self) -> StoreServer {
        match self {
            Self::Postgres => StoreServer::Postgres(Box::new(PostgresServer::start())),
            Self::DurablePostgres => {
                let server = PostgresServer::builder().setting("fsync", "on");
                StoreServer::Postgres(Box::new(server.setting("synchronous_commit", "on").start()))
            }
            Self::Etcd => StoreServer::Etcd {
                members: EtcdSet::start(1),
                used: 0,
            },
            Self::EtcdMembers => {
                let members = EtcdSet::start(3);
                let used = (members.leader() + 1) % members.len();
                StoreServer::Etcd { members, used }
            }
            Self::Zookeeper => {
                // The tick that servers have by default, so that sessions last as long as the leases elsewhere.
                let server = Zookeeper::builder().setting("tickTime=2000");
                StoreServer::Zookeeper(server.setting("maxSessionTimeout=40000").start())
            }
        }
    }
}

impl StoreServer {
    /// Returns the version of the server, and of what came with it.
    pub(crate) fn version(&self) -> Fallible<String> {
        match self {
            Self::Postgres(server) => {
                let lines = server.sql("show server_version;");
                let version = lines.first().ok_or("no version")?;
                Ok(version.split(' ').next().unwrap_or_default().to_owned())
            }
            Self::Etcd { members, used } => {
                let metrics = members[*used].metrics();
                let (_, rest) = metrics.split_once("server_version=\"").unwrap_or_default();
                Ok(rest.split('"').next().unwrap_or_default().to_owned())
            }
            Self::Zookeeper(server) => {
                let version = server.fact("Zookeeper version").ok_or("no version")?;
                let version = version.split(['-', ',']).next().unwrap_or_default();
                let curator = jar_version(&server.class_path(), "curator-recipes");
                Ok(format!("{version}, with Curator {curator}"))
            }
        }
    }

    /// Returns how many requests the server has received. PostgreSQL counts transactions instead.
    pub(crate) fn requests(&self) -> Fallible<f64> {
        match self {
            Self::Postgres(server) => {
                let sum = "select sum(xact_commit + xact_rollback) from pg_stat_database;";
                let lines = server.sql(sum);
                Ok(lines.first().ok_or("no counter")?.parse()?)
            }
            Self::Etcd { members, used } => {
                let metrics = members[*used].metrics();
                let counters = metrics
                    .lines()
                    .filter(|line| line.starts_with("grpc_server_msg_received_total"));
                let counts =
                    counters.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
                Ok(counts.sum())
            }
            Self::Zookeeper(server) => Ok(server.fact("Received").ok_or("no counter")?.parse()?),
        }
    }
}

impl Servers for StoreServer {
    fn ports(&self) -> Vec<u16> {
        match self {
            Self::Postgres(server) => vec![server.port()],
            Self::Etcd { members, used } => vec![members[*used].port()],
            Self::Zookeeper(server) => server.ports(),
        }
    }

    fn pids(&self) -> Vec<u32> {
        match self {
            Self::Postgres(server) => vec![server.pid()],
            Self::Etcd { members, .. } => members.iter().map(EtcdServer::pid).collect(),
            Self::Zookeeper(server) => vec![server.pid(0)],
        }
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Zookeeper(server) => vec![("CLASSPATH", server.class_path())],
            Self::Postgres(_) | Self::Etcd { .. } => Vec::new(),
        }
    }
}

/// Returns the version of a jar in a class path. Next to it is a file or link with the version in its name.
fn jar_version(class_path: &str, name: &str) -> String {
    let jar = class_path.split(':').find(|jar| jar.contains(name));
    let folder = jar
        .and_then(|jar| Path::new(jar).parent())
        .map(fs::read_dir);
    let files = folder.into_iter().flatten().flatten().flatten();
    let version = files.map(|file| file.file_name()).find_map(|file| {
        let version = file.to_str()?.strip_prefix(name)?.strip_prefix('-')?;
        Some(version.strip_suffix(".jar")?.to_owned())
    });
    version.unwrap_or_else(|| "of unknown version".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_a_jar_is_in_a_name_next_to_it() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["curator-recipes.jar", "curator-recipes-5.4.0.jar"] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        let class_path = format!("guava.jar:{}/curator-recipes.jar", folder.path().display());
        assert_eq!(jar_version(&class_path, "curator-recipes"), "5.4.0");
        assert_eq!(jar_version(&class_path, "netty"), "of unknown version");
    }
}
