//! Servers that answer, and refuse to write for a while.

use std::fs;

use leasehold_testkit::servers::{RedisServer, RedisSet, Reply, until};
use tempfile::TempDir;

use crate::elections::elect::{lead, until_led};
use crate::support::harness::Sandbox;

const REPLICA: &str = "read-only replica";

/// A way to refuse, the commands that begin and end it, and what the server says.
const WAYS: [(&str, [&[&str]; 2]); 3] = [
    (
        "NOREPLICAS",
        [
            &["CONFIG", "SET", "min-replicas-to-write", "1"],
            &["CONFIG", "SET", "min-replicas-to-write", "0"],
        ],
    ),
    (
        "OOM",
        [
            &["CONFIG", "SET", "maxmemory", "1"],
            &["CONFIG", "SET", "maxmemory", "0"],
        ],
    ),
    (
        REPLICA,
        [
            &["REPLICAOF", "127.0.0.1", "1"],
            &["REPLICAOF", "NO", "ONE"],
        ],
    ),
];

/// The lock is held by a client of another library.
fn hold_by_foreigner(servers: &RedisSet) {
    for server in servers.iter() {
        server.command(&["SET", "x", "foreign"]);
    }
}

/// Waits for `x` on servers that refuse to write meanwhile, as `begin` and `end` say.
fn assert_waiter_outlasts(
    sandbox: &Sandbox,
    servers: &RedisSet,
    refusal: &str,
    begin: impl Fn(&RedisServer),
    end: impl Fn(&RedisServer),
) {
    hold_by_foreigner(servers);
    let waiter = sandbox.start("run -v --ttl 3s x echo mine");
    waiter.says("waiting for ");
    servers.iter().take(2).for_each(begin);
    waiter.says(refusal);
    // Servers that refuse have answered, so a client that begins now does not give up after one TTL.
    let newcomer = sandbox.start("run --ttl 2500ms x true");
    let newcomer = match refusal {
        REPLICA => {
            // Its address may be wrong.
            newcomer.wait().fails(69, &["is a replica"]);
            None
        }
        _ => {
            newcomer.says(refusal);
            Some(newcomer)
        }
    };
    sandbox.run("run -w 3s x true").fails(69, &[]);
    servers.iter().for_each(end);
    for server in servers.iter() {
        server.command(&["DEL", "x"]);
    }
    let ended = waiter.wait().succeeds();
    assert_eq!(ended.stdout, "mine\n");
    if let Some(newcomer) = newcomer {
        newcomer.wait().succeeds();
    }
    for server in servers.iter() {
        let name = format!("127.0.0.1:{}", server.port());
        let reports = |line: &&str| line.contains(&name) && line.contains(refusal);
        let count = ended.stderr.lines().filter(reports).count();
        assert!(count <= 1, "{ended:?}");
    }
}

fn tell(words: &[&str]) -> impl Fn(&RedisServer) {
    move |server| {
        server.command(words);
    }
}

#[test]
fn waiter_outlasts_server_that_refuses_writes() {
    for (refusal, [begin, end]) in WAYS {
        let servers = RedisSet::start(1);
        let sandbox = Sandbox::on(&servers.urls());
        assert_waiter_outlasts(&sandbox, &servers, refusal, tell(begin), tell(end));
    }
}

#[test]
fn waiter_outlasts_failed_snapshot() {
    let folder = TempDir::new().unwrap();
    let settings = RedisServer::builder().directive("dir", &folder.path().display().to_string());
    let servers = RedisSet::start_each(1, &settings.directive("dbfilename", "taken"));
    let sandbox = Sandbox::on(&servers.urls());
    // A file cannot replace a folder.
    fs::create_dir(folder.path().join("taken")).unwrap();
    let begin = |server: &RedisServer| {
        server.command(&["CONFIG", "SET", "save", "3600 1"]);
        server.command(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "yes"]);
        server.command(&["BGSAVE"]);
        until("the snapshot to fail", || {
            let answer = server.command(&["INFO", "persistence"]);
            matches!(answer, Reply::Bulk(text) if text.contains("rdb_last_bgsave_status:err"))
        });
    };
    let end = |server: &RedisServer| {
        server.command(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]);
    };
    assert_waiter_outlasts(&sandbox, &servers, "MISCONF", begin, end);
}

#[test]
fn waiter_outlasts_two_of_three_that_refuse() {
    let (sandbox, servers) = Sandbox::on_quorum(3);
    let [(refusal, [begin, end]), ..] = WAYS;
    assert_waiter_outlasts(&sandbox, &servers, refusal, tell(begin), tell(end));
}

#[test]
fn replica_is_unreachable_for_new_client() {
    let primary = RedisServer::start();
    let replica = RedisServer::builder().replica_of(&primary).start();
    let sandbox = Sandbox::on(&[replica.url()]);
    for args in ["run -n x true", "status x", "acquire -n x"] {
        sandbox.run(args).fails(69, &["is a replica"]);
    }
}

#[test]
fn election_outlasts_refused_writes() {
    let (sandbox, server) = Sandbox::on_redis();
    let leader = lead(&sandbox, "a", "");
    until_led(&sandbox, 1);
    let standby = lead(&sandbox, "b", "");
    standby.says("waiting for ");
    let (refusal, [begin, end]) = WAYS[0];
    server.command(begin);
    leader.says("lost lock");
    leader.says("campaigning");
    standby.says(refusal);
    server.command(end);
    until_led(&sandbox, 2);
    drop((leader, standby));
}
