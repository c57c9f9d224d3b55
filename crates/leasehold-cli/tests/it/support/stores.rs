//! A sandbox for each store, for tests of what every store does.

use std::fs;
use std::ops::Deref;

use leasehold_testkit::servers::{
    EtcdServer, PostgresServer, RedisServer, RedisSet, Zookeeper, until,
};

use crate::support::harness::Sandbox;

/// Makes a test for each of these stores. The test `name::store` calls the function `name` with a [`TestStore`].
macro_rules! on_stores {
    ($test:ident: $($store:ident)+) => {
        mod $test {
            $(
                #[test]
                fn $store() {
                    super::$test(&mut crate::support::stores::$store());
                }
            )+
        }
    };
}
pub(crate) use on_stores;

/// A sandbox, and the servers of its store.
pub(crate) struct TestStore {
    sandbox: Sandbox,
    servers: Servers,
}

enum Servers {
    None,
    Redis(RedisSet),
    Postgres(Box<PostgresServer>),
    Etcd(EtcdServer),
    Zookeeper(Zookeeper),
}

pub(crate) fn file() -> TestStore {
    TestStore::new(Sandbox::new(), Servers::None)
}

pub(crate) fn redis() -> TestStore {
    let one = RedisSet::start(1);
    TestStore::new(Sandbox::on(&one.urls()), Servers::Redis(one))
}

/// Three durable servers.
pub(crate) fn redis_quorum() -> TestStore {
    let (sandbox, servers) = Sandbox::on_durable_quorum(3);
    TestStore::new(sandbox, Servers::Redis(servers))
}

pub(crate) fn postgres() -> TestStore {
    let (sandbox, server) = Sandbox::on_postgres();
    TestStore::new(sandbox, Servers::Postgres(Box::new(server)))
}

pub(crate) fn etcd() -> TestStore {
    let (sandbox, server) = Sandbox::on_etcd();
    TestStore::new(sandbox, Servers::Etcd(server))
}

pub(crate) fn zookeeper() -> TestStore {
    let (sandbox, servers) = Sandbox::on_zookeeper(1);
    TestStore::new(sandbox, Servers::Zookeeper(servers))
}

impl TestStore {
    fn new(sandbox: Sandbox, servers: Servers) -> Self {
        Self { sandbox, servers }
    }

    /// The servers of a test that runs on Redis alone.
    pub(crate) fn redis(&self) -> &RedisSet {
        match &self.servers {
            Servers::Redis(servers) => servers,
            _ => panic!("{} is not Redis", self.store()),
        }
    }

    /// Whether a lock is a lease that ends unless it is renewed.
    pub(crate) fn has_leases(&self) -> bool {
        !matches!(self.servers, Servers::None)
    }

    /// Takes `lock` from its holder, like a script that does not know about locks.
    pub(crate) fn delete(&self, lock: &str) {
        match &self.servers {
            Servers::None => fs::remove_file(self.path(&format!("locks/{lock}.lock"))).unwrap(),
            Servers::Redis(servers) => servers.iter().for_each(|server| {
                server.command(&["DEL", lock]);
            }),
            Servers::Postgres(server) => drop(server.sql(&format!(
                "update leasehold.lock set owner = null where name = '{lock}';"
            ))),
            Servers::Etcd(_) | Servers::Zookeeper(_) => {
                panic!("a lock of {} is more than one key", self.store())
            }
        }
    }

    /// Stops all servers with SIGSTOP.
    pub(crate) fn freeze(&self) {
        match &self.servers {
            Servers::None => {}
            Servers::Redis(servers) => servers.iter().for_each(RedisServer::freeze),
            Servers::Postgres(server) => server.freeze(),
            Servers::Etcd(server) => server.freeze(),
            Servers::Zookeeper(servers) => servers.freeze(0),
        }
    }

    pub(crate) fn thaw(&self) {
        match &self.servers {
            Servers::None => {}
            Servers::Redis(servers) => servers.iter().for_each(RedisServer::thaw),
            Servers::Postgres(server) => server.thaw(),
            Servers::Etcd(server) => server.thaw(),
            Servers::Zookeeper(servers) => servers.thaw(0),
        }
    }

    /// Kills all servers.
    pub(crate) fn kill(&mut self) {
        match &mut self.servers {
            Servers::None => {}
            Servers::Redis(servers) => servers.iter_mut().for_each(RedisServer::kill),
            Servers::Postgres(server) => server.kill(),
            Servers::Etcd(server) => server.kill(),
            Servers::Zookeeper(servers) => servers.kill(0),
        }
    }

    /// Starts all servers again after [`kill`](Self::kill). Returns once the store grants locks.
    pub(crate) fn restart(&mut self) {
        match &mut self.servers {
            Servers::None => {}
            Servers::Redis(servers) => servers.iter_mut().for_each(RedisServer::restart),
            Servers::Postgres(server) => server.restart(),
            Servers::Etcd(server) => server.restart(),
            Servers::Zookeeper(servers) => servers.restart(0),
        }
        until("the store grants locks", || {
            self.run("run -w 1s other true").code() == 0
        });
    }
}

impl Deref for TestStore {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}
