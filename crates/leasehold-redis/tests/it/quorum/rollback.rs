//! A durable member that comes back with older data while a lease is held there.

use std::time::Duration;

use leasehold::Client;
use leasehold::member::MemberHealth;
use leasehold_redis::RedisStore;
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply, until};

use crate::support::{configure, eventually, value};

/// Three durable servers in one quorum, and a port where nothing listens.
struct DurableQuorum {
    servers: RedisSet,
    dead: RedisServer,
    max_ttl: Duration,
}

impl DurableQuorum {
    async fn formed(max_ttl: Duration) -> Self {
        let servers = RedisSet::start_each(3, &RedisServer::builder().durable());
        let mut dead = RedisServer::start();
        dead.kill();
        let fixture = Self {
            servers,
            dead,
            max_ttl,
        };
        fixture.quorum(fixture.ports()).init().await.unwrap();
        fixture
    }

    fn ports(&self) -> [u16; 3] {
        [0, 1, 2].map(|member| self.servers[member].port())
    }

    fn quorum(&self, ports: [u16; 3]) -> RedisStore {
        let named = ports.iter().enumerate();
        let urls = named.map(|(member, port)| format!("redis://127.0.0.1:{port}?id=m{member}"));
        RedisStore::new(urls).unwrap().max_ttl(self.max_ttl)
    }

    fn client(&self) -> Client {
        Client::new(self.quorum(self.ports()))
    }

    /// Takes the lock on m0 and m1 while m2 is down for this client, lets `roll_back` happen to m1,
    /// and checks that a client with the members at the returned ports is refused.
    async fn second_holder_is_refused(
        &mut self,
        roll_back: impl FnOnce(&mut RedisServer) -> Option<u16>,
    ) {
        let [first, second, third] = self.ports();
        let holder = Client::new(self.quorum([first, second, self.dead.port()]));
        let held = holder.lock("x").ttl(self.max_ttl).try_acquire().await;
        let held = held.unwrap().expect("a free lock");
        let moved = roll_back(&mut self.servers[1]);
        let other = Client::new(self.quorum([first, moved.unwrap_or(second), third]));
        let granted = other.lock("x").ttl(self.max_ttl).try_acquire().await;
        let granted = granted.unwrap_or_default();
        assert!(
            granted.is_none() || !held.is_valid(),
            "two holders: {granted:?} beside {held:?}"
        );
        let health = other.health().await.unwrap();
        let why = health[1].untrusted_reason.as_ref().expect("m1 has no vote");
        let reasons = ["restarted", "was a replica"];
        let names_it = |part: &&str| why.error.reason().contains(*part);
        assert!(reasons.iter().any(names_it), "{why}");
    }
}

/// Whether m1's record says that it is not durable, and both other members know of it.
fn is_noticed(health: &[MemberHealth]) -> bool {
    let member_record = |member: &MemberHealth| member.status.as_ref().ok()?.member_record.clone();
    let member_records: Option<Vec<_>> = health.iter().map(member_record).collect();
    let Some([first, second, third]) = member_records.as_deref() else {
        return false;
    };
    let knows = |other: &leasehold::member::MemberRecord| {
        let observation = other.observations.get(&health[1].id);
        observation.is_some_and(|observation| observation.data_generation == second.data_generation)
    };
    !second.durable && knows(first) && knows(third)
}

#[tokio::test]
async fn member_killed_after_rdb_move_has_no_vote() {
    let mut fixture = DurableQuorum::formed(Duration::from_secs(5)).await;
    let server = &mut fixture.servers[1];
    configure(server, &["CONFIG", "SET", "appendonly", "no"]);
    configure(server, &["CONFIG", "REWRITE"]);
    configure(server, &["SAVE"]);
    server.restart();
    let looking = fixture.client();
    eventually("m1 has a vote again", async || {
        let health = looking.health().await.unwrap();
        let m1 = &health[1];
        (m1.status.is_ok() && m1.untrusted_reason.is_none()).then_some(())
    })
    .await;
    fixture
        .second_holder_is_refused(|server| {
            server.restart();
            assert_eq!(value(server, "x"), Reply::Nil, "the lease is forgotten");
            None
        })
        .await;
}

#[tokio::test]
async fn durability_switched_off_then_killed_has_no_vote() {
    let mut fixture = DurableQuorum::formed(Duration::from_secs(60)).await;
    configure(&fixture.servers[1], &["CONFIG", "SET", "appendonly", "no"]);
    let looking = fixture.client();
    eventually("the other members know of it", async || {
        is_noticed(&looking.health().await.unwrap()).then_some(())
    })
    .await;
    let health = looking.health().await.unwrap();
    let out = health.iter().find_map(|it| it.untrusted_reason.as_ref());
    assert!(out.is_none(), "no member loses its vote by that: {out:?}");
    fixture
        .second_holder_is_refused(|server| {
            // By its configuration file it is durable again, and it has the data from before.
            server.restart();
            assert_eq!(value(server, "x"), Reply::Nil, "the lease is forgotten");
            None
        })
        .await;
}

/// Returns a durable server with the present data of `primary`, cut off from it: a replica that lags behind.
async fn lagging_replica_of(primary: &RedisServer) -> RedisServer {
    let replica = RedisServer::builder().durable().replica_of(primary).start();
    let epoch = ["HGET", "leasehold:member_record", "epoch"];
    eventually("the replica has the data", async || {
        (replica.command(&epoch) == primary.command(&epoch)).then_some(())
    })
    .await;
    configure(&replica, &["REPLICAOF", "NO", "ONE"]);
    until_replication_says(primary, "connected_slaves:0");
    replica
}

fn until_replication_says(server: &RedisServer, part: &str) {
    until(part, || {
        let info = server.command(&["INFO", "replication"]);
        matches!(info, Reply::Bulk(info) if info.contains(part))
    });
}

#[tokio::test]
async fn promoted_replica_has_no_vote() {
    let mut fixture = DurableQuorum::formed(Duration::from_secs(60)).await;
    // No client sees the two together.
    let replica = lagging_replica_of(&fixture.servers[1]).await;
    let port = replica.port();
    fixture
        .second_holder_is_refused(|server| {
            server.kill();
            Some(port)
        })
        .await;
}

#[tokio::test]
async fn failover_and_back_has_no_vote() {
    let mut fixture = DurableQuorum::formed(Duration::from_secs(60)).await;
    let replica = lagging_replica_of(&fixture.servers[1]).await;
    let port = replica.port().to_string();
    fixture
        .second_holder_is_refused(|server| {
            configure(server, &["REPLICAOF", "127.0.0.1", &port]);
            until_replication_says(server, "master_link_status:up");
            configure(server, &["REPLICAOF", "NO", "ONE"]);
            None
        })
        .await;
}
