//! `doctor` on real servers: well, and with each thing that can be wrong.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply};
use serde_json::{Value, json};

use crate::administration::doctor::{check, doctor, found, is_documented, verdict};
use crate::support::harness::{Sandbox, id};
use crate::support::program::assert_fields;

/// All keys with their values, and what the server counts of its own changes.
fn state(server: &RedisServer) -> Vec<String> {
    let Reply::Array(keys) = server.command(&["KEYS", "*"]) else {
        panic!("KEYS was not answered with a list");
    };
    let dump = |key: &Reply| match key {
        Reply::Bulk(key) => format!("{key} {:?}", server.command(&["DUMP", key])),
        other => panic!("{other:?}"),
    };
    let mut state: Vec<String> = keys.iter().map(dump).collect();
    state.sort();
    let Reply::Bulk(info) = server.command(&["INFO", "persistence"]) else {
        panic!("INFO was not answered with a text");
    };
    let mut lines = info.lines().map(str::to_owned);
    state.extend(lines.find(|line| line.starts_with("rdb_changes_since_last_save")));
    state
}

/// Asserts that nothing is wrong, except the distance of a server, which depends on the load of this
/// machine.
#[track_caller]
fn all_green(of: &Value) {
    let checks = of["checks"].as_array().unwrap();
    let judged = checks.iter().filter(|it| it["id"] != "round_trip");
    let ill: Vec<_> = judged.filter(|it| it["verdict"] != "green").collect();
    assert!(ill.is_empty() && checks.len() > 3, "{of}");
}

#[test]
fn doctor_changes_nothing_on_one_redis() {
    let (sandbox, server) = Sandbox::on_redis();
    sandbox.run("run x true").succeeds();
    let before = state(&server);
    let (code, report) = doctor(&sandbox);
    assert_eq!((code, state(&server)), (0, before));
    assert_fields(
        &report,
        json!({"verdict": "yellow", "voting": 1, "needed": 1}),
    );
    assert_eq!(verdict(&report, "members"), "yellow");
    assert_eq!(verdict(&report, "quorum"), "green");
    let one = &report["members"][0];
    let green = "reachable encryption version role eviction writes rights push keys vote";
    for check in green.split(' ') {
        assert_eq!(verdict(one, check), "green", "{check}");
    }
    assert_eq!(verdict(one, "persistence"), "yellow");
    let facts = &one["facts"];
    assert_fields(facts, json!({"has_vote": true, "durable": false}));
    assert!(facts["round_trip_us"].as_u64() > Some(0), "{facts}");
    let offset = facts["clock_offset_us"].as_i64().unwrap();
    assert!(offset.abs() < 2_000_000, "{facts}");
}

#[test]
fn healthy_redis_quorum_is_green_and_unchanged() {
    let servers = RedisSet::start_each(5, &RedisServer::builder().durable());
    let sandbox = Sandbox::on(&servers.urls());
    let state_of_all = || servers.iter().map(state).collect::<Vec<_>>();
    let empty = state_of_all();
    let (code, report) = doctor(&sandbox);
    assert_eq!(code, 69, "{report}");
    assert!(found(&report, "quorum").contains("leasehold init"));
    assert_eq!(verdict(&report["members"][0], "record"), "yellow");
    assert_eq!(state_of_all(), empty, "looking initializes nothing");

    sandbox.run("init").succeeds();
    let initialized = state_of_all();
    let (code, report) = doctor(&sandbox);
    assert_eq!(state_of_all(), initialized);
    assert_eq!(code, 0, "{report}");
    all_green(&report);
    assert_fields(&report, json!({"voting": 5, "needed": 3}));
    for member in report["members"].as_array().unwrap() {
        let restart = found(member, "restart");
        assert!(restart.contains("may be restarted now"), "{member}");
        all_green(member);
    }
    is_documented(&sandbox, &report);
    let text = sandbox.run("doctor --all").stdout;
    for part in ["5 of 5 servers have a vote, 3 needed", " yellow, 0 red\n"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn dead_frozen_and_restarted_servers_are_reported() {
    let (sandbox, mut servers) = Sandbox::on_quorum(5);
    servers[0].kill();
    servers[1].freeze();
    servers[2].restart();
    let before = state(&servers[2]);
    let began = SystemClock.now();
    let (code, report) = doctor(&sandbox);
    let took = SystemClock.now().since(began);
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!((code, &report["voting"]), (69, &2.into()), "{report}");
    let members = &report["members"];
    for (place, part) in [(0, "no connection"), (1, "no answer within")] {
        assert_eq!(verdict(&members[place], "reachable"), "red");
        let found = found(&members[place], "reachable");
        assert!(found.contains(part), "{report}");
    }
    assert_eq!(members[2]["facts"]["has_vote"], false);
    assert_eq!(verdict(&members[2], "record"), "yellow");
    assert_eq!(verdict(&members[2], "vote"), "yellow", "{report}");
    assert_eq!(verdict(&members[3], "restart"), "yellow");
    assert_eq!(state(&servers[2]), before, "no member record is written");
    servers[1].thaw();
}

#[test]
fn a_minority_that_is_ill_is_78() {
    let (sandbox, mut servers) = Sandbox::on_quorum(3);
    servers[0].kill();
    let (code, report) = doctor(&sandbox);
    let quorum = verdict(&report, "quorum");
    assert_eq!((code, &*quorum), (78, "green"), "{report}");
    let remedy = found(&report["members"][1], "restart");
    assert!(remedy.contains("fix the other servers"), "{remedy}");
}

#[test]
fn server_with_damaged_record_has_no_vote() {
    let (sandbox, servers) = Sandbox::on_quorum(3);
    servers[0].command(&["DEL", "leasehold:member_record"]);
    servers[0].command(&["SET", "leasehold:member_record", "x"]);
    let (code, report) = doctor(&sandbox);
    assert_eq!((code, &report["voting"]), (78, &2.into()), "{report}");
    let damaged = &report["members"][0];
    assert_eq!(damaged["facts"]["has_vote"], false);
    assert_eq!(verdict(damaged, "vote"), "red", "{damaged}");
}

#[test]
fn what_can_be_no_member_is_named() {
    let primary = RedisServer::start();
    let replica = RedisServer::builder().replica_of(&primary).start();
    let evicting = RedisServer::builder()
        .directive("maxmemory", "64mb")
        .directive("maxmemory-policy", "volatile-ttl")
        .start();
    let full = RedisServer::builder().directive("maxmemory", "1").start();
    for (server, check, part) in [
        (&replica, "role", "REPLICAOF NO ONE"),
        (&replica, "writes", "READONLY"),
        (&evicting, "eviction", "maxmemory-policy noeviction"),
        (&full, "writes", "OOM"),
    ] {
        let (code, report) = doctor(&Sandbox::on(&[server.url()]));
        assert!([69, 78].contains(&code), "{report}");
        let member = &report["members"][0];
        assert_eq!(verdict(member, check), "red", "{report}");
        assert!(found(member, check).contains(part), "{report}");
    }
}

#[test]
fn duplicate_server_and_differing_quorum_are_red() {
    let (_sandbox, servers) = Sandbox::on_quorum(3);
    let urls = servers.urls();
    let alias = format!("{}?id=other", urls[0].replace("127.0.0.1", "localhost"));
    let twice = Sandbox::on(&[&urls[..2], &[alias]].concat());
    let (code, found_twice) = doctor(&twice);
    assert_eq!(code, 69, "{found_twice}");
    for (place, colour) in [(0, "red"), (1, "green"), (2, "red")] {
        let member = &found_twice["members"][place];
        assert_eq!(verdict(member, "same_server"), colour);
    }
    let (code, alone) = doctor(&Sandbox::on(&urls[..1]));
    assert_eq!(verdict(&alone["members"][0], "record"), "red", "{alone}");
    assert!([69, 78].contains(&code));
}

#[test]
fn a_stepped_clock_is_red() {
    let steppable = RedisSet::start_each(3, &RedisServer::builder().steppable_clock());
    let (sandbox, servers) = Sandbox::on_initialized(steppable, "");
    servers[1].clock().forward(Duration::from_secs(5));
    let (code, report) = doctor(&sandbox);
    assert_eq!(code, 78, "{report}");
    let clocks = [0, 1, 2].map(|place| verdict(&report["members"][place], "clock"));
    assert_eq!(clocks, ["green", "red", "green"]);
    let stepped = &report["members"][1];
    let far = "ahead of the servers' median; the tolerance is 250ms";
    assert!(found(stepped, "clock").contains(far), "{stepped}");
    // Time alone does not correct a clock.
    let vote = json!({"has_vote": false, "no_vote_for_ms": null});
    assert_fields(&stepped["facts"], vote);
    assert!(
        found(stepped, "vote").contains("fix what is red above"),
        "{stepped}"
    );
}

#[test]
fn user_without_rights_gets_the_acl_line() {
    let server = RedisServer::builder()
        .acl("ann", "on >secret ~* +info +config|get +time +get")
        .start();
    let sandbox = Sandbox::on(&[format!("redis://ann:secret@{}", id(&server))]);
    let (code, report) = doctor(&sandbox);
    assert_eq!(code, 78, "{report}");
    assert!(!report.to_string().contains("secret"));
    let member = &report["members"][0];
    assert_eq!(verdict(member, "rights"), "red");
    assert_eq!(verdict(member, "keys"), "yellow", "nobody may look");
    let line = check(member, "rights")["remedy"].as_str().unwrap();
    let answer = sandbox.shell(&format!("redis-cli -p {} {line}", server.port()));
    assert_eq!(answer.wait().stdout, "OK\n", "{line}");
    let (code, report) = doctor(&sandbox);
    let rights = verdict(&report["members"][0], "rights");
    assert_eq!((code, &*rights), (0, "green"));
    sandbox.run("run x true").succeeds();

    let wrong = Sandbox::on(&[format!("redis://ann:guess@{}", id(&server))]);
    let (code, report) = doctor(&wrong);
    assert_eq!(code, 69);
    let text = found(&report["members"][0], "reachable");
    assert!(
        text.contains("password") && !text.contains("guess"),
        "{text}"
    );
}

#[test]
fn foreign_locks_and_tls_are_seen() {
    let server = RedisServer::builder().tls().start();
    server.command(&["HSET", "myLock", "uuid:1", "1"]);
    let ca = server.ca().certificate();
    let sandbox = Sandbox::on(&[format!("{}?ca={}", server.tls_url(), ca.display())]);
    let (code, report) = doctor(&sandbox);
    assert_eq!(code, 0, "{report}");
    let member = &report["members"][0];
    assert_eq!(verdict(member, "keys"), "yellow");
    assert!(found(member, "keys").contains("Redisson"), "{report}");
    assert_eq!(verdict(member, "encryption"), "green");
    // The client does not know the authority.
    let (code, _) = doctor(&Sandbox::on(&[server.tls_url()]));
    assert_eq!(code, 69);
}
