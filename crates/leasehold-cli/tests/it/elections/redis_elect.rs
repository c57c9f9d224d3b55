//! `elect` on one Redis and on five: leaders that are lost, stopped, or cut off from their servers.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply, until};
use nix::sys::signal::Signal;

use crate::elections::elect::{changes, fences, lead, until_leads, until_led};
use crate::support::harness::{Sandbox, id};
use crate::support::processes::{outlast, until_gone};
use crate::support::program::sh;
use crate::support::stores::{TestStore, on_stores};

on_stores!(stopped_leader_is_followed: redis redis_quorum);

/// A leader is stopped, with its lease ahead; the next one leads; then the first one goes on.
fn stopped_leader_is_followed(sandbox: &TestStore) {
    let frozen = sandbox.redis().get(2);
    frozen.inspect(|server| server.freeze());
    let first = lead(sandbox, "a", "");
    until_led(sandbox, 1);
    let command = sandbox.pid_in("a.pid");
    until_leads(sandbox, "a");
    let second = lead(sandbox, "b", "");
    second.says("waiting for ");
    first.signal(Signal::SIGSTOP);
    until_led(sandbox, 2);
    until_gone(command);
    until_leads(sandbox, "b");
    first.signal(Signal::SIGCONT);
    first.says("lost lock \"x\"");
    first.says("campaigning for \"x\" again");
    second.signal(Signal::SIGKILL);
    until_led(sandbox, 3);
    until_leads(sandbox, "a");
    assert_eq!(sandbox.lines_in("overlaps"), [""; 0]);
    frozen.inspect(|server| server.thaw());
}

#[test]
fn broken_leader_names_operator_and_campaigns_again() {
    let (sandbox, _server) = Sandbox::on_redis();
    let leader = lead(&sandbox, "a", "--json");
    until_led(&sandbox, 1);
    let command = sandbox.pid_in("a.pid");
    let fence = fences(&sandbox)[0];
    let args = format!("break x --fence {fence} --reason hangs");
    // Its fence is shown from its first renewal on.
    until("it is broken", || sandbox.run(&args).code() == 0);
    until_gone(command);
    for event in ["lost", "broken", "campaigns"] {
        leader.says(&format!(r#""event":"{event}""#));
    }
    leader.says("hangs");
    until_led(&sandbox, 2);
    assert_eq!(sandbox.lines_in("overlaps"), [""; 0]);
}

#[test]
fn leader_of_frozen_servers_leads_again_later() {
    let (sandbox, servers) = Sandbox::on_quorum(5);
    let observer = sandbox.start("elect --observe --json --every 100ms x");
    let leader = lead(&sandbox, "a", "");
    until_led(&sandbox, 1);
    let command = sandbox.pid_in("a.pid");
    let seen = |event: &str, count: usize| {
        until(&format!("{count} times {event}"), || {
            let told = changes(&sandbox, "stdout-1").into_iter();
            told.filter(|change| change["event"] == event).count() >= count
        });
    };
    seen("leads", 1);
    (0..3).for_each(|index| servers[index].freeze());
    until_gone(command);
    // It campaigns again, and waits for as long as the outage lasts.
    leader.says("waiting for ");
    seen("unknown", 1);
    (0..3).for_each(|index| servers[index].thaw());
    until_led(&sandbox, 2);
    seen("leads", 2);
    observer.signal(Signal::SIGTERM);
    assert_eq!(observer.wait().code(), 143);
    let told = changes(&sandbox, "stdout-1");
    let led = told
        .iter()
        .filter_map(|change| change["leader"]["fence"].as_u64());
    let led: Vec<u64> = led.collect();
    assert!(led.is_sorted(), "{led:?}");
    assert_eq!(led.last(), fences(&sandbox).last());
    drop(leader);
}

/// Waits for three times the TTL of [`lead`], the longest time that a client asks a store that never
/// answered.
fn outlast_an_outage(server: &mut RedisServer) {
    server.kill();
    outlast(Duration::from_secs(9));
    server.restart();
}

#[test]
fn standby_survives_an_outage_longer_than_the_ttl() {
    let (sandbox, mut server) = Sandbox::on_redis();
    let first = lead(&sandbox, "a", "");
    until_led(&sandbox, 1);
    let standby = lead(&sandbox, "b", "");
    standby.says("waiting for ");
    first.signal(Signal::SIGKILL);
    until_gone(sandbox.pid_in("a.pid"));
    outlast_an_outage(&mut server);
    until_led(&sandbox, 2);
    until_leads(&sandbox, "b");
    standby.says("Connection refused");
}

#[test]
fn waiter_without_limit_survives_an_outage() {
    let (sandbox, mut server) = Sandbox::on_redis();
    server.command(&["SET", "x", "another-library", "PX", "600000"]);
    let waiter = sandbox.start(&sh("run -v --ttl 3s x", "exit 3"));
    waiter.says("waiting for ");
    // The lock is gone with the data.
    outlast_an_outage(&mut server);
    let ended = waiter.wait();
    assert_eq!(ended.code(), 3, "{ended:?}");
}

/// A quorum of three with one dead, and a sandbox of a user who may take locks, but write no records: an announcement
/// is tried again and again.
fn quorum_without_records() -> (Sandbox, RedisSet) {
    let (_, mut servers) = Sandbox::on_quorum(3);
    let let_in = |server: &RedisServer| {
        let rules = ["on", ">secret", "~*", "&*", "+@all", "-hset"];
        server.command(&[&["ACL", "SETUSER", "ann"], &rules[..]].concat());
        format!("redis://ann:secret@{}", id(server))
    };
    let urls: Vec<String> = servers.iter().map(let_in).collect();
    servers[2].kill();
    (Sandbox::on(&urls), servers)
}

#[test]
fn unannounced_leader_can_be_ended() {
    let (sandbox, servers) = quorum_without_records();
    let candidate = sandbox.start("elect --ttl 60s --json x -- touch ran");
    candidate.says(r#""event":"acquired""#);
    candidate.signal(Signal::SIGTERM);
    assert_eq!(candidate.wait().code(), 143);
    for server in servers.iter().take(2) {
        until("the lock is free", || {
            server.command(&["EXISTS", "x"]) == Reply::Integer(0)
        });
    }
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn unannounceable_leader_ends_after_a_ttl() {
    let (sandbox, _servers) = quorum_without_records();
    let began = SystemClock.now();
    let candidate = sandbox.run("elect --ttl 3s x -- touch ran");
    candidate.fails(69, &["+hset"]);
    let took = SystemClock.now().since(began);
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn leader_lost_before_announcing_campaigns_again() {
    let (sandbox, servers) = quorum_without_records();
    let candidate = lead(&sandbox, "a", "--json");
    candidate.says(r#""event":"acquired""#);
    let command = |command: &[&str]| {
        let answering = servers.iter().take(2);
        answering.for_each(|server| drop(server.command(command)));
    };
    command(&["DEL", "x"]);
    candidate.says(r#""event":"lost""#);
    command(&["ACL", "SETUSER", "ann", "+hset"]);
    until_led(&sandbox, 1);
    until_leads(&sandbox, "a");
}

#[test]
fn command_decides_the_code_without_a_server() {
    let (sandbox, server) = Sandbox::on_redis();
    sandbox.gate("go");
    let script = "echo $LEASEHOLD_FENCE >> fences; read go < go; exit 3";
    let leader = sandbox.start(&sh("elect --ttl 60s x", script));
    until_led(&sandbox, 1);
    server.freeze();
    sandbox.open_gate("go");
    leader.wait().fails(3, &["warning: "]);
    server.thaw();
}

#[test]
fn silent_servers_are_69_at_first() {
    let sandbox = Sandbox::on(&["redis://127.0.0.1:1".to_owned()]);
    for args in ["elect --ttl 1s x touch ran", "elect --observe --once x"] {
        sandbox.run(args).fails(69, &["127.0.0.1:1"]);
    }
    assert!(!sandbox.path("ran").exists());
}
