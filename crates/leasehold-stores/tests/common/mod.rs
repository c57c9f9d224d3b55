//! Running stores of each kind.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::Path;

use leasehold::{Client, ErrorKind};
use leasehold_stores::{AnyStore, Connect as _};
use leasehold_testkit::servers::{
    EtcdServer, PostgresServer, RedisServer, RedisSet, Reply, Zookeeper,
};
use tempfile::TempDir;

/// A store, and the servers that it needs.
#[expect(clippy::large_enum_variant, reason = "a test has one")]
pub(crate) enum Place {
    Files(TempDir),
    Redis(RedisServer),
    Quorum(RedisSet),
    Postgres(PostgresServer),
    Etcd(EtcdServer),
    Zookeeper(Zookeeper),
}

impl Place {
    pub(crate) fn files() -> Self {
        Self::Files(tempfile::tempdir().unwrap())
    }

    pub(crate) fn redis() -> Self {
        Self::Redis(RedisServer::start())
    }

    pub(crate) async fn quorum() -> Self {
        let servers = RedisSet::start(3);
        let AnyStore::Redis(store) = AnyStore::new(&servers.urls()).unwrap() else {
            unreachable!("these are Redis servers");
        };
        store.init().await.unwrap();
        Self::Quorum(servers)
    }

    pub(crate) async fn postgres() -> Self {
        let server = PostgresServer::start();
        let AnyStore::Postgres(store) = AnyStore::parse(&server.url()).unwrap() else {
            unreachable!("this is PostgreSQL");
        };
        store.init().await.unwrap();
        Self::Postgres(server)
    }

    pub(crate) fn etcd() -> Self {
        Self::Etcd(EtcdServer::start())
    }

    pub(crate) fn zookeeper() -> Self {
        Self::Zookeeper(Zookeeper::start())
    }

    /// Returns a new client.
    pub(crate) fn client(&self) -> Client {
        let url = match self {
            Self::Files(folder) => file_url(folder.path()),
            Self::Redis(server) => server.url(),
            Self::Quorum(servers) => servers.urls().join(","),
            Self::Postgres(server) => server.url(),
            Self::Etcd(server) => format!("etcd://127.0.0.1:{}", server.port()),
            Self::Zookeeper(servers) => servers.url(),
        };
        Client::connect(&url).unwrap()
    }

    /// Returns the port of its only server.
    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::Redis(server) => server.port(),
            Self::Postgres(server) => server.port(),
            Self::Etcd(server) => server.port(),
            Self::Zookeeper(servers) => servers.ports()[0],
            Self::Files(_) | Self::Quorum(_) => unreachable!("it has no or several servers"),
        }
    }

    /// Returns a new client that reaches the only server by another port.
    pub(crate) fn client_through(&self, port: u16) -> Client {
        let url = match self {
            Self::Redis(_) => format!("redis://127.0.0.1:{port}"),
            Self::Postgres(_) => PostgresServer::url_at(port),
            Self::Etcd(_) => format!("etcd://127.0.0.1:{port}"),
            Self::Zookeeper(_) => format!("zk://127.0.0.1:{port}/locks"),
            Self::Files(_) | Self::Quorum(_) => unreachable!("it has no or several servers"),
        };
        Client::connect(&url).unwrap()
    }

    /// Returns how many requests wait for the lock.
    pub(crate) async fn waiters(&self, client: &Client, name: &str) -> usize {
        let shown = match client.waiters(name).await {
            // On a busy machine, a server with a crowd may answer so late that the client opens another connection.
            Err(error) if error.kind() == ErrorKind::Unreachable => client.waiters(name).await,
            shown => shown,
        };
        let shown = shown.unwrap().len();
        let queue = format!("leasehold:queue:{{{name}}}:{name}");
        let on = |server: &RedisServer| match server.command(&["ZCARD", &queue]) {
            Reply::Integer(count) => count as usize,
            other => unreachable!("ZCARD: {other:?}"),
        };
        match self {
            // Of Redis, the client shows at most 1,000.
            Self::Redis(server) if shown == 1_000 => on(server),
            Self::Quorum(servers) if shown == 1_000 => servers.iter().map(on).min().unwrap(),
            _ => shown,
        }
    }

    /// Stops all servers without their knowledge, until [`Place::thaw`].
    pub(crate) fn freeze(&self) {
        match self {
            Self::Files(_) => {}
            Self::Redis(server) => server.freeze(),
            Self::Quorum(servers) => servers.iter().for_each(RedisServer::freeze),
            Self::Postgres(server) => server.freeze(),
            Self::Etcd(server) => server.freeze(),
            Self::Zookeeper(servers) => servers.freeze(0),
        }
    }

    pub(crate) fn thaw(&self) {
        match self {
            Self::Files(_) => {}
            Self::Redis(server) => server.thaw(),
            Self::Quorum(servers) => servers.iter().for_each(RedisServer::thaw),
            Self::Postgres(server) => server.thaw(),
            Self::Etcd(server) => server.thaw(),
            Self::Zookeeper(servers) => servers.thaw(0),
        }
    }
}

fn file_url(folder: &Path) -> String {
    format!("file://{}/locks", folder.display())
}

/// Returns the number in an environment variable, for runs that are larger than those of each change.
#[expect(
    clippy::disallowed_methods,
    reason = "only a person sets it, for one run"
)]
pub(crate) fn number(variable: &str, default: usize) -> usize {
    let named = std::env::var(variable);
    named.map_or(default, |number| number.parse().unwrap())
}
