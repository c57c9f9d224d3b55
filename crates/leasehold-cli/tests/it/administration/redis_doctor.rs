//! `doctor` on real servers: well, and with each thing that can be wrong.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply};
use serde_json::Value;

use crate::administration::doctor::{is_documented, report, verdict};
use crate::run::redis::{initialized_quorum, run};
use crate::support::harness::{Ended, Sandbox};

fn doctor(sandbox: &Sandbox, urls: &[String]) -> (i32, Value) {
    let ended = run(sandbox, urls, &["doctor", "--json"]);
    (ended.code(), report(&ended))
}

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
    let changes = match server.command(&["INFO", "persistence"]) {
        Reply::Bulk(info) => info
            .lines()
            .find(|line| line.starts_with("rdb_changes_since_last_save"))
            .map(str::to_owned),
        other => panic!("{other:?}"),
    };
    state.extend(changes);
    state
}

fn found(of: &Value, check: &str) -> String {
    let mut checks = of["checks"].as_array().unwrap().iter();
    let check = checks.find(|it| it["id"] == check).unwrap();
    format!("{} {} {}", check["found"], check["why"], check["remedy"])
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
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    assert_eq!(
        run(&sandbox, &[server.url()], &["run", "x", "true"]).code(),
        0
    );
    let before = state(&server);
    let (code, report) = doctor(&sandbox, &[server.url()]);
    assert_eq!(state(&server), before);
    assert_eq!(
        (code, &report["verdict"]),
        (0, &"yellow".into()),
        "{report}"
    );
    assert_eq!(
        (&report["voting"], &report["needed"]),
        (&1.into(), &1.into())
    );
    assert_eq!(verdict(&report, "members"), "yellow");
    assert_eq!(verdict(&report, "quorum"), "green");
    let one = &report["members"][0];
    for check in [
        "reachable",
        "encryption",
        "version",
        "role",
        "eviction",
        "writes",
        "rights",
        "push",
        "keys",
        "vote",
    ] {
        assert_eq!(verdict(one, check), "green", "{check}");
    }
    assert_eq!(verdict(one, "persistence"), "yellow");
    let facts = &one["facts"];
    assert_eq!(
        (&facts["has_vote"], &facts["durable"]),
        (&true.into(), &false.into())
    );
    assert!(facts["round_trip_us"].as_u64().unwrap() > 0, "{facts}");
    assert!(
        facts["clock_offset_us"].as_i64().unwrap().abs() < 2_000_000,
        "{facts}"
    );
}

#[test]
fn healthy_redis_quorum_is_green_and_unchanged() {
    let sandbox = Sandbox::new();
    let settings = RedisServer::builder().durable();
    let servers = RedisSet::start_each(5, &settings);
    let urls = servers.urls();
    let state_of_all = || servers.iter().map(state).collect::<Vec<_>>();
    let empty = state_of_all();
    let (code, report) = doctor(&sandbox, &urls);
    assert_eq!(code, 69, "{report}");
    assert!(found(&report, "quorum").contains("leasehold init"));
    assert_eq!(verdict(&report["members"][0], "record"), "yellow");
    assert_eq!(state_of_all(), empty, "looking initializes nothing");

    assert_eq!(run(&sandbox, &urls, &["init"]).code(), 0);
    let initialized = state_of_all();
    let (code, report) = doctor(&sandbox, &urls);
    assert_eq!(state_of_all(), initialized);
    assert_eq!(code, 0, "{report}");
    all_green(&report);
    assert_eq!(
        (&report["voting"], &report["needed"]),
        (&5.into(), &3.into())
    );
    for member in report["members"].as_array().unwrap() {
        assert!(
            found(member, "restart").contains("may be restarted now"),
            "{member}"
        );
        all_green(member);
    }
    is_documented(&sandbox, &report);
    let text = run(&sandbox, &urls, &["doctor"]).stdout;
    assert!(
        text.contains("5 of 5 servers have a vote, 3 needed"),
        "{text}"
    );
    assert!(text.contains(" yellow, 0 red\n"), "{text}");
}

#[test]
fn dead_frozen_and_restarted_servers_are_reported() {
    let sandbox = Sandbox::new();
    let mut servers = initialized_quorum(&sandbox, 5);
    let urls = servers.urls();
    servers[0].kill();
    servers[1].freeze();
    servers[2].restart();
    let before = state(&servers[2]);
    let began = SystemClock.now();
    let (code, report) = doctor(&sandbox, &urls);
    let took = SystemClock.now().since(began);
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!((code, &report["voting"]), (69, &2.into()), "{report}");
    let members = &report["members"];
    for (place, part) in [(0, "no connection"), (1, "no answer within")] {
        assert_eq!(verdict(&members[place], "reachable"), "red");
        assert!(
            found(&members[place], "reachable").contains(part),
            "{report}"
        );
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
    let sandbox = Sandbox::new();
    let mut servers = initialized_quorum(&sandbox, 3);
    servers[0].kill();
    let (code, report) = doctor(&sandbox, &servers.urls());
    assert_eq!(
        (code, verdict(&report, "quorum")),
        (78, "green".into()),
        "{report}"
    );
    let remedy = found(&report["members"][1], "restart");
    assert!(remedy.contains("fix the other servers"), "{remedy}");
}

#[test]
fn server_with_damaged_record_has_no_vote() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 3);
    servers[0].command(&["DEL", "leasehold:member_record"]);
    servers[0].command(&["SET", "leasehold:member_record", "x"]);
    let (code, report) = doctor(&sandbox, &servers.urls());
    assert_eq!((code, &report["voting"]), (78, &2.into()), "{report}");
    let damaged = &report["members"][0];
    assert_eq!(damaged["facts"]["has_vote"], false);
    assert_eq!(verdict(damaged, "vote"), "red", "{damaged}");
}

#[test]
fn what_can_be_no_member_is_named() {
    let sandbox = Sandbox::new();
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
        (
            &evicting,
            "eviction",
            "CONFIG SET maxmemory-policy noeviction",
        ),
        (&full, "writes", "OOM"),
    ] {
        let (code, report) = doctor(&sandbox, &[server.url()]);
        assert!([69, 78].contains(&code), "{report}");
        let member = &report["members"][0];
        assert_eq!(verdict(member, check), "red", "{report}");
        assert!(found(member, check).contains(part), "{report}");
    }
}

#[test]
fn duplicate_server_and_differing_quorum_are_red() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 3);
    let urls = servers.urls();
    let alias = format!("{}?id=other", urls[0].replace("127.0.0.1", "localhost"));
    let (code, report) = doctor(&sandbox, &[&urls[..2], &[alias]].concat());
    assert_eq!(code, 69, "{report}");
    for (place, colour) in [(0, "red"), (1, "green"), (2, "red")] {
        assert_eq!(verdict(&report["members"][place], "same_server"), colour);
    }
    let ended = run(&sandbox, &urls, &["doctor", "--json", "--max-ttl", "20s"]);
    let report = crate::administration::doctor::report(&ended);
    assert_eq!(ended.code(), 69);
    let member_record = found(&report["members"][0], "record");
    assert!(
        member_record.contains("max_ttl 60s") && member_record.contains("max_ttl 20s"),
        "{member_record}"
    );
    let (code, report) = doctor(&sandbox, &urls[..1]);
    assert_eq!(verdict(&report["members"][0], "record"), "red", "{report}");
    assert!([69, 78].contains(&code));
}

#[test]
fn a_stepped_clock_is_red() {
    let sandbox = Sandbox::new();
    let settings = RedisServer::builder().steppable_clock();
    let servers = RedisSet::start_each(3, &settings);
    let urls = servers.urls();
    assert_eq!(run(&sandbox, &urls, &["init"]).code(), 0);
    servers[1].clock().forward(Duration::from_secs(5));
    let (code, report) = doctor(&sandbox, &urls);
    assert_eq!(code, 78, "{report}");
    let clocks = [0, 1, 2].map(|place| verdict(&report["members"][place], "clock"));
    assert_eq!(clocks, ["green", "red", "green"]);
    let far = found(&report["members"][1], "clock");
    assert!(
        far.contains("ahead of the servers' median; the tolerance is 250ms"),
        "{far}"
    );
    // Time alone does not correct a clock.
    let stepped = &report["members"][1];
    assert_eq!(stepped["facts"]["has_vote"], false, "{stepped}");
    assert!(stepped["facts"]["no_vote_for_ms"].is_null(), "{stepped}");
    let vote = found(stepped, "vote");
    assert!(vote.contains("fix what is red above"), "{vote}");
}

#[test]
fn user_without_rights_gets_the_acl_line() {
    let sandbox = Sandbox::new();
    let server = RedisServer::builder()
        .acl("ann", "on >secret ~* +info +config|get +time +get")
        .start();
    let urls = [format!("redis://ann:secret@127.0.0.1:{}", server.port())];
    let (code, report) = doctor(&sandbox, &urls);
    assert_eq!(code, 78, "{report}");
    assert!(!report.to_string().contains("secret"));
    let member = &report["members"][0];
    assert_eq!(verdict(member, "rights"), "red");
    assert_eq!(verdict(member, "keys"), "yellow", "nobody may look");
    let checks = member["checks"].as_array().unwrap();
    let rights = checks.iter().find(|it| it["id"] == "rights").unwrap();
    let line = rights["remedy"].as_str().unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(server.command(&words), Reply::Status("OK".into()), "{line}");
    let (code, report) = doctor(&sandbox, &urls);
    assert_eq!(
        (code, verdict(&report["members"][0], "rights")),
        (0, "green".into())
    );
    assert_eq!(run(&sandbox, &urls, &["run", "x", "true"]).code(), 0);

    let wrong = [format!("redis://ann:guess@127.0.0.1:{}", server.port())];
    let (code, report) = doctor(&sandbox, &wrong);
    assert_eq!(code, 69);
    let text = found(&report["members"][0], "reachable");
    assert!(
        text.contains("password") && !text.contains("guess"),
        "{text}"
    );
}

#[test]
fn foreign_locks_and_tls_are_seen() {
    let sandbox = Sandbox::new();
    let server = RedisServer::builder().tls().start();
    server.command(&["HSET", "myLock", "uuid:1", "1"]);
    let ca = server.ca().certificate();
    let url = format!("{}?ca={}", server.tls_url(), ca.display());
    let (code, report) = doctor(&sandbox, &[url]);
    assert_eq!(code, 0, "{report}");
    let member = &report["members"][0];
    assert_eq!(verdict(member, "keys"), "yellow");
    assert!(found(member, "keys").contains("Redisson"), "{report}");
    assert_eq!(verdict(member, "encryption"), "green");
    let ended: Ended = run(&sandbox, &[server.tls_url()], &["doctor"]);
    assert_eq!(
        ended.code(),
        69,
        "an authority that nobody knows: {ended:?}"
    );
}
