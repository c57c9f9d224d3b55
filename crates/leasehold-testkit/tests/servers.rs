//! The servers do what the other tests rely on.
#![allow(missing_docs, reason = "a test program has no API")]

use std::time::Duration;

use leasehold_testkit::servers::{
    AppendFsync, EtcdServer, EtcdSet, PostgresServer, RedisServer, RedisSet, Reply, RespConnection,
    until,
};

fn pong() -> Reply {
    Reply::Status("PONG".into())
}

fn runs(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_server_answers_until_it_is_dropped() {
    let server = RedisServer::start();
    assert_eq!(server.command(&["PING"]), pong());
    let (pid, port) = (server.pid(), server.port());
    assert!(runs(pid));
    drop(server);
    assert!(!runs(pid));
    assert!(RespConnection::open(port).is_err());
}

#[test]
fn frozen_server_is_silent_until_thawed() {
    let server = RedisServer::start();
    let mut connection = server.connect();
    server.freeze();
    server.thaw();
    assert_eq!(connection.call(&["PING"]).unwrap(), pong());
    server.freeze();
    let pid = server.pid();
    drop(server);
    assert!(!runs(pid));
}

#[test]
fn restart_keeps_address_and_durable_data() {
    let value = |server: &RedisServer| server.command(&["GET", "k"]);
    for (settings, kept) in [
        (RedisServer::builder(), Reply::Nil),
        (RedisServer::builder().durable(), Reply::Bulk("v".into())),
    ] {
        let mut server = settings.start();
        let url = server.url();
        server.command(&["SET", "k", "v"]);
        server.kill();
        server.restart();
        assert_eq!(server.url(), url);
        assert_eq!(value(&server), kept);
    }
}

#[test]
fn passwords_and_users_are_enforced() {
    let server = RedisServer::builder()
        .password("secret")
        .acl("reader", "on >word ~* +get")
        .start();
    assert_eq!(server.command(&["PING"]), pong());
    let mut stranger = RespConnection::open(server.port()).unwrap();
    let refused = stranger.call(&["GET", "k"]).unwrap();
    assert!(matches!(refused, Reply::Error(text) if text.starts_with("NOAUTH")));
    stranger.call(&["AUTH", "reader", "word"]).unwrap();
    assert_eq!(stranger.call(&["GET", "k"]).unwrap(), Reply::Nil);
}

#[test]
fn replicas_and_cluster_nodes_are_what_they_say() {
    let primary = RedisServer::start();
    let replica = RedisServer::builder().replica_of(&primary).start();
    primary.command(&["SET", "k", "v"]);
    until("the replica follows", || {
        replica.command(&["GET", "k"]) == Reply::Bulk("v".into())
    });
    let node = RedisServer::builder().cluster().start();
    assert_eq!(node.command(&["SET", "k", "v"]), Reply::Status("OK".into()));
}

#[test]
fn server_set_has_distinct_servers() {
    let set = RedisSet::start(5);
    let mut urls = set.urls();
    urls.dedup();
    assert_eq!(urls.len(), 5);
    assert!(set.iter().all(|server| server.command(&["PING"]) == pong()));
}

#[test]
fn servers_die_with_a_killed_program() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let mut program = Command::new(env!("CARGO_BIN_EXE_leasehold-servers"))
        .arg("2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let lines: Vec<String> = lines.take(3).map(Result::unwrap).collect();
    assert!(lines[2].starts_with("export LEASEHOLD_STORE=redis://127.0.0.1:"));
    let pid = |line: &str| {
        let (_, rest) = line.split_once("(pid ").unwrap();
        rest.trim_end_matches(')').parse::<u32>().unwrap()
    };
    let pids = [pid(&lines[0]), pid(&lines[1])];
    assert!(pids.into_iter().all(runs));
    program.kill().unwrap();
    program.wait().unwrap();
    until("the kernel killed the servers", || {
        !pids.into_iter().any(runs)
    });
}

#[test]
fn postgres_server_runs_until_dropped() {
    let server = PostgresServer::start();
    let (pid, directory) = (server.pid(), server.directory().to_path_buf());
    let mut session = server.session();
    assert_eq!(session.run("SELECT 1, 'x';"), ["1|x"]);
    assert_eq!(session.run("CREATE TABLE t (a int);"), ["CREATE TABLE"]);
    assert_eq!(
        session.run("INSERT INTO t VALUES (1), (2);"),
        ["INSERT 0 2"]
    );
    assert_eq!(session.run("SELEC;"), ["ERROR:  42601"]);
    assert_eq!(session.run("SELECT sum(a) FROM t;"), ["3"]);
    drop(server);
    assert!(!runs(pid) && !directory.exists());
}

/// The seconds that the server's clock shows.
fn seconds(server: &RedisServer) -> i64 {
    match server.command(&["TIME"]) {
        Reply::Array(parts) => match &parts[0] {
            Reply::Bulk(seconds) => seconds.parse().expect("a number"),
            other => panic!("TIME: {other:?}"),
        },
        other => panic!("TIME: {other:?}"),
    }
}

#[test]
fn expiry_follows_a_stepped_server_clock() {
    let server = RedisServer::builder().steppable_clock().start();
    let other = RedisServer::start();
    let ahead = || seconds(&server) - seconds(&other);
    let hour = Duration::from_secs(3600);
    let slack = 60;
    assert!(ahead().abs() < slack);
    server.command(&["SET", "soon", "v", "PX", "1800000"]);
    server.command(&["SET", "late", "v", "PX", "7200000"]);
    server.clock().forward(hour);
    assert!((ahead() - 3600).abs() < slack);
    assert_eq!(server.command(&["GET", "soon"]), Reply::Nil);
    let Reply::Integer(left) = server.command(&["PTTL", "late"]) else {
        panic!("no TTL")
    };
    assert!((3_000_000..=3_600_000).contains(&left), "{left} ms left");
    server.clock().back(2 * hour);
    assert!((ahead() + 3600).abs() < slack);
    let uptime = server.command(&["INFO", "server"]);
    assert!(
        matches!(&uptime, Reply::Bulk(text) if text.contains("uptime_in_seconds:-")),
        "{uptime:?}"
    );
    server.clock().set_right();
    assert!(ahead().abs() < slack);
}

#[test]
fn power_cut_loses_unsynced_data() {
    let settings = RedisServer::builder().append_only(AppendFsync::EverySecond);
    let mut server = settings.start();
    server.command(&["SET", "old", "v"]);
    let kept = server.appended();
    server.command(&["SET", "new", "v"]);
    until("the change is written", || server.appended() > kept);
    server.restart_after_power_cut(kept);
    assert_eq!(server.command(&["GET", "old"]), Reply::Bulk("v".into()));
    assert_eq!(server.command(&["GET", "new"]), Reply::Nil);
}

#[test]
fn etcd_members_elect_another_leader() {
    let mut set = EtcdSet::start_with(3, EtcdServer::builder().fast_elections());
    let first = set.leader();
    let put = set[first].etcdctl(&["put", "k", "v"]);
    assert!(put.status.success(), "{put:?}");
    set[first].freeze();
    let second = set.leader_but(first);
    assert_ne!(first, second);
    set[first].thaw();
    until("the former leader follows", || !set[first].is_leader());
    set[second].kill();
    let third = set.leader_but(second);
    set[second].restart();
    let value = set[third].etcdctl(&["get", "k", "--print-value-only"]);
    assert_eq!(value.stdout, b"v\n");
}

#[test]
fn etcd_serves_tls_clients_with_a_certificate() {
    let server = EtcdServer::builder().client_certificates().start();
    let put = server.etcdctl(&["put", "k", "v"]);
    assert!(put.status.success(), "{put:?}");
    let pid = server.pid();
    drop(server);
    assert!(!runs(pid));
}
