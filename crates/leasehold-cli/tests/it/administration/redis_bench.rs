//! `bench` on one Redis and on quorums of five, also with dead members, and when it is interrupted.

use leasehold_testkit::servers::{RedisServer, RedisSet, Reply, until};
use nix::sys::signal::Signal;
use serde_json::json;

use crate::administration::bench::{SHORT, figures, is_bound, is_timed};
use crate::support::harness::{Sandbox, id};
use crate::support::program::assert_fields;

/// What stays at a server without any client.
const KEPT: [&str; 2] = ["leasehold:member_record", "leasehold:present"];

/// The names at a server without those of its quorum and of clients that were there, which every
/// client leaves for minutes.
fn left(server: &RedisServer) -> Vec<String> {
    let Reply::Array(keys) = server.command(&["KEYS", "*"]) else {
        panic!("no keys");
    };
    let names = keys.into_iter().map(|key| match key {
        Reply::Bulk(name) => name,
        other => panic!("{other:?}"),
    });
    names
        .filter(|name| !name.starts_with("leasehold:client:") && !KEPT.contains(&name.as_str()))
        .collect()
}

#[test]
fn one_server_is_measured_and_nothing_is_left() {
    let server = RedisServer::start();
    let sandbox = Sandbox::on(&[format!("{}?prefix=app:", server.url())]);
    server.command(&["SET", "theirs", "1"]);
    let figures = figures(&sandbox.run("bench --duration 500ms --json"));
    let member = &figures["members"][0];
    assert_eq!(member["id"], id(&server));
    assert_fields(member, json!({"answers": true, "has_vote": true}));
    is_timed(&member["round_trip"]);
    let renewals = &figures["renewals"];
    is_timed(&renewals["message"]);
    is_bound(&renewals["limited_by"]);
    assert!(renewals["locks"].as_u64().unwrap() > 0, "{renewals}");
    let rate = renewals["renewals_per_s"].as_f64().unwrap();
    let carried = figures["estimate"]["locks_renewed"].as_f64().unwrap();
    assert!((carried - rate * 10.0).abs() <= 2.0, "{figures}");
    assert_eq!(left(&server), ["theirs"]);
}

#[test]
fn five_servers_with_one_dead_are_measured() {
    let (sandbox, mut servers) = Sandbox::on_quorum(5);
    servers[3].kill();
    let ended = sandbox.run(SHORT).succeeds();
    let dead = id(&servers[3]);
    for part in [
        &*format!("\nround trip to {dead} "),
        &format!("\n{dead}: no connection"),
        "\nhand-over ",
        "\nrenewal, 128 locks a message ",
        "these 5 servers (4 with a vote) serve about ",
        " locks renewed at TTL 30s (",
    ] {
        assert!(ended.stdout.contains(part), "no {part:?} in {ended:?}");
    }
    for (place, server) in servers.iter().enumerate() {
        if place != 3 {
            assert_eq!(left(server), [""; 0]);
        }
    }
}

#[test]
fn frozen_member_is_named_and_skipped() {
    let (sandbox, servers) = Sandbox::on_quorum(3);
    servers[1].freeze();
    let ended = sandbox.run("bench --duration 500ms --json");
    servers[1].thaw();
    let member = &figures(&ended)["members"][1];
    assert_fields(member, json!({"answers": false, "has_vote": false}));
    assert!(member["reason"].as_str().unwrap().contains("no answer"));
}

#[test]
fn too_few_members_are_69_and_leave_nothing() {
    let (sandbox, mut servers) = Sandbox::on_quorum(3);
    servers[0].kill();
    servers[2].kill();
    let dead = [0, 2].map(|place: usize| id(&servers[place]));
    let ended = sandbox.run(SHORT);
    ended.fails(69, &["no quorum", "2 needed", &dead[0], &dead[1]]);
    assert_eq!(ended.stdout, "");
    assert_eq!(left(&servers[1]), [""; 0]);
    let one = ["redis://127.0.0.1:1".to_owned()];
    let ended = sandbox.run_at(&one, SHORT);
    ended.fails(69, &["127.0.0.1:1", "no connection"]);
}

#[test]
fn bench_does_not_initialize_a_quorum() {
    let servers = RedisSet::start(3);
    let ended = Sandbox::on(&servers.urls()).run(SHORT);
    ended.fails(69, &["not initialized", "leasehold init"]);
    for server in servers.iter() {
        assert_eq!(server.command(&["DBSIZE"]), Reply::Integer(0));
    }
}

#[test]
fn interrupt_leaves_nothing_on_the_servers() {
    let (sandbox, servers) = Sandbox::on_quorum(5);
    for (part, signal, code) in [
        ("one", Signal::SIGINT, 130),
        ("many-7", Signal::SIGTERM, 143),
        ("handed", Signal::SIGINT, 130),
        ("renewed-9", Signal::SIGINT, 130),
    ] {
        let bench = sandbox.start("bench --duration 4s");
        until(&format!("{part} has begun"), || {
            let keys = left(&servers[0]);
            keys.iter().any(|key| key.ends_with(part))
        });
        bench.signal(signal);
        let ended = bench.wait();
        assert_eq!((ended.code(), &*ended.stdout), (code, ""), "{ended:?}");
        for server in servers.iter() {
            assert_eq!(left(server), [""; 0], "{part}");
        }
    }
}

#[test]
fn store_that_dies_ends_the_measurement() {
    let (sandbox, mut server) = Sandbox::on_redis();
    let bench = sandbox.start("bench --duration 30s");
    until("it has begun", || !left(&server).is_empty());
    server.kill();
    let ended = bench.wait();
    assert_eq!((ended.code(), &*ended.stdout), (69, ""), "{ended:?}");
    let id = id(&server);
    ended.fails(69, &[&id, "cannot remove"]);
}
