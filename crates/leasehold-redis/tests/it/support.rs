use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};
use leasehold::env::{Env, SystemEntropy};
use leasehold::member::{
    DataGeneration, MemberId, MemberRecord, MemberRecordEdit, MemberSet, MemberStatus,
};
use leasehold::store::{Permits, Session, SessionContext, Store as _};
use leasehold::{Client, Error, Guard, Key, Mode};
use leasehold_redis::{RedisMember, RedisStore};
use leasehold_testkit::servers::{LIMIT, RedisServer, RedisSet, Reply};
use tokio::runtime::Handle;

/// A lease that outlives any test.
pub(crate) const TTL: Duration = Duration::from_secs(60);

pub(crate) fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

pub(crate) fn member(server: &RedisServer) -> RedisMember {
    RedisMember::new(server.url()).unwrap()
}

pub(crate) fn store(server: &RedisServer) -> RedisStore {
    store_at(&server.url())
}

pub(crate) fn store_at(url: &str) -> RedisStore {
    RedisStore::new([url]).unwrap()
}

/// Opens a session of a client of its own.
pub(crate) fn session(server: &RedisServer) -> Arc<dyn Session> {
    session_at(&server.url())
}

pub(crate) fn session_at(url: &str) -> Arc<dyn Session> {
    let env = Env::default();
    let info = Arc::new(env.this_process(None));
    store_at(url).open(SessionContext::new(env, info, Handle::current()))
}

/// Starts a server, and a client of it.
pub(crate) fn start() -> (RedisServer, Client) {
    let server = RedisServer::start();
    let client = client(&server);
    (server, client)
}

/// A client of one server.
pub(crate) fn client(server: &RedisServer) -> Client {
    client_at(&server.url())
}

pub(crate) fn client_at(url: &str) -> Client {
    Client::new(store_at(url))
}

pub(crate) fn quorum(servers: &RedisSet) -> RedisStore {
    RedisStore::new(servers.urls()).unwrap()
}

/// Takes a lock that is free.
pub(crate) async fn take(client: &Client, name: &str, mode: Mode) -> Guard {
    let lock = client.lock(name).ttl(TTL).mode(mode);
    lock.try_acquire().await.unwrap().expect("a free lock")
}

pub(crate) async fn hold(client: &Client, name: &str) -> Guard {
    take(client, name, Mode::Exclusive).await
}

pub(crate) async fn share(client: &Client, name: &str) -> Guard {
    take(client, name, Mode::Shared).await
}

pub(crate) fn permits(count: u32) -> Mode {
    Mode::Permit(Permits::new(count).unwrap())
}

/// Takes one of `count` permits.
pub(crate) async fn permit(client: &Client, name: &str, count: u32) -> Guard {
    take(client, name, permits(count)).await
}

/// Takes a free lock and releases it.
pub(crate) async fn pass(client: &Client, name: &str) {
    hold(client, name).await.release().await.unwrap();
}

pub(crate) async fn is_busy(client: &Client, name: &str) -> bool {
    let guard = client.lock(name).ttl(TTL).try_acquire().await.unwrap();
    guard.is_none()
}

/// Returns the error of an attempt that cannot take the lock.
pub(crate) async fn refused(client: &Client, name: &str) -> Error {
    match client.lock(name).ttl(TTL).try_acquire().await {
        Err(error) => error,
        Ok(guard) => panic!("{name:?} was not refused: {guard:?}"),
    }
}

/// Returns an edit that replaces the member record, for a quorum of this member alone.
pub(crate) fn member_record_edit(status: &MemberStatus, id: &str) -> MemberRecordEdit {
    let id = MemberId::new(id);
    let other = MemberId::new("other");
    MemberRecordEdit {
        expected: status.member_record.as_ref().map(MemberRecord::epoch),
        set: MemberSet::new([id], TTL, Duration::from_millis(250)),
        generation: status
            .member_record
            .as_ref()
            .map_or(1, |member_record| member_record.generation),
        run: status.run.clone(),
        durable: status.durable,
        data_generation: DataGeneration::random(&SystemEntropy),
        age: Some(Duration::ZERO),
        seen: vec![(other, DataGeneration::random(&SystemEntropy))],
    }
}

/// Repeats `look` until it finds something.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = SystemClock.now() + LIMIT;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        let now = SystemClock.now();
        assert!(now < end, "{what}: not within {LIMIT:?}");
        SystemClock
            .sleep_until(now + Duration::from_millis(5))
            .await;
    }
}

/// Waits until this many waiters are in the queue of the lock.
pub(crate) async fn queued(server: &RedisServer, name: &str, count: i64) {
    let queue = format!("leasehold:queue:{{{name}}}:{name}");
    eventually("they are queued", async || {
        let length = server.command(&["ZCARD", &queue]);
        (length == Reply::Integer(count)).then_some(())
    })
    .await;
}

pub(crate) fn value(server: &RedisServer, key: &str) -> Reply {
    server.command(&["GET", key])
}

/// Returns how long the key still lives, in milliseconds.
pub(crate) fn left(server: &RedisServer, key: &str) -> i64 {
    match server.command(&["PTTL", key]) {
        Reply::Integer(left) => left,
        other => panic!("PTTL: {other:?}"),
    }
}

/// Returns how many connections of clients the server has.
pub(crate) fn connections(server: &RedisServer) -> usize {
    match server.command(&["CLIENT", "LIST"]) {
        Reply::Bulk(list) => list.matches(" name=leasehold ").count(),
        other => panic!("CLIENT LIST: {other:?}"),
    }
}

/// Returns how often the server ran a command since its statistics began.
pub(crate) fn calls(server: &RedisServer, command: &str) -> u64 {
    let Reply::Bulk(stats) = server.command(&["INFO", "commandstats"]) else {
        panic!("INFO")
    };
    let start = format!("cmdstat_{command}:calls=");
    let line = stats.lines().find_map(|line| line.strip_prefix(&start));
    let calls = line.and_then(|line| line.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

/// Sets what a user may do.
pub(crate) fn set_user(server: &RedisServer, user: &str, rules: &[&str]) {
    configure(
        server,
        &[&["ACL", "SETUSER", user, "reset"], rules].concat(),
    );
}

/// The rights of `user` that the front page of the crate lists.
pub(crate) fn documented_rights(user: &str) -> Vec<&'static str> {
    let start = format!("//! ACL SETUSER {user} ");
    let mut lines = include_str!("../../src/lib.rs").lines();
    let line = lines.find_map(|line| line.strip_prefix(&start));
    line.unwrap().split(' ').collect()
}

/// Configures the server.
pub(crate) fn configure(server: &RedisServer, words: &[&str]) {
    let answer = server.command(words);
    assert_eq!(answer, Reply::Status("OK".into()), "{words:?}");
}
