//! `elect` on one Redis and on five: leaders that are lost, stopped, or cut off from their servers.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply, until};
use nix::sys::signal::Signal;

use crate::elections::elect::{changes, fences, until_led};
use crate::run::redis::{initialized_quorum, run, start};
use crate::support::harness::{Running, Sandbox};
use crate::support::processes::until_gone;

/// Notes its fence, its process, and whether the command of another leader is still there.
const LEAD: &str = r#"
for other in *.pid; do
    if [ -s $other ] && kill -0 $(cat $other) 2> /dev/null; then echo $other >> overlaps; fi
done
echo $$ > $0.pid
echo $LEASEHOLD_FENCE >> fences
trap "" TERM
while :; do sleep 0.02; done"#;

fn lead(sandbox: &Sandbox, urls: &[String], who: &str, options: &[&str]) -> Running {
    let command = ["--value", who, "x", "--", "sh", "-c", LEAD, who];
    let ttl = ["elect", "--ttl", "3s", "--grace", "200ms"];
    start(sandbox, urls, &[&ttl, options, &command].concat())
}

/// The value of the current leader, as an observer sees it.
fn leader(sandbox: &Sandbox, urls: &[String]) -> String {
    let args = ["elect", "--observe", "--once", "--json", "x"];
    let ended = run(sandbox, urls, &args);
    let change: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let value = change["leader"]["value"].as_str();
    value.unwrap_or_default().to_owned()
}

/// A leader is stopped, with its lease ahead; the next one leads; then the first one goes on.
fn stopped_and_continued(sandbox: &Sandbox, urls: &[String]) {
    let first = lead(sandbox, urls, "a", &[]);
    until_led(sandbox, 1);
    let command = sandbox.pid_in("a.pid");
    assert_eq!(leader(sandbox, urls), "a");
    let second = lead(sandbox, urls, "b", &[]);
    second.says("waiting for lock");
    first.signal(Signal::SIGSTOP);
    until_led(sandbox, 2);
    until_gone(command);
    assert_eq!(leader(sandbox, urls), "b");
    first.signal(Signal::SIGCONT);
    first.says("lost lock \"x\"");
    first.says("campaigning for \"x\" again");
    second.signal(Signal::SIGKILL);
    until_led(sandbox, 3);
    until("an observer sees it", || leader(sandbox, urls) == "a");
    assert_eq!(
        sandbox.lines_in("overlaps"),
        [""; 0],
        "two commands at once"
    );
    drop(first);
}

#[test]
fn stopped_leader_on_one_server_is_followed() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    stopped_and_continued(&sandbox, &[server.url()]);
}

#[test]
fn stopped_leader_on_five_servers_is_followed() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 5);
    servers[2].freeze();
    stopped_and_continued(&sandbox, &servers.urls());
    servers[2].thaw();
}

#[test]
fn deleted_leadership_is_campaigned_for_again() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let leader = lead(&sandbox, &[server.url()], "a", &["--json"]);
    until_led(&sandbox, 1);
    server.command(&["DEL", "x"]);
    until_led(&sandbox, 2);
    leader.says(r#""event":"lost""#);
    leader.says(r#""event":"campaigns""#);
    let once = lead(&sandbox, &[server.url()], "b", &["--once"]);
    once.says("waiting for lock");
    leader.signal(Signal::SIGKILL);
    until_led(&sandbox, 3);
    server.command(&["DEL", "x"]);
    once.wait()
        .fails(76, &["lost lock \"x\": the lease vanished"]);
}

#[test]
fn broken_leader_names_operator_and_campaigns_again() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let urls = [server.url()];
    let leader = lead(&sandbox, &urls, "a", &["--json"]);
    until_led(&sandbox, 1);
    let command = sandbox.pid_in("a.pid");
    let fence = fences(&sandbox)[0].to_string();
    let args = ["break", "x", "--fence", &fence, "--reason", "it hangs"];
    // Its fence is shown from its first renewal on.
    until("it is broken", || run(&sandbox, &urls, &args).code() == 0);
    until_gone(command);
    for event in ["lost", "broken", "campaigns"] {
        leader.says(&format!(r#""event":"{event}""#));
    }
    leader.says("it hangs");
    until_led(&sandbox, 2);
    assert_eq!(sandbox.lines_in("overlaps"), [""; 0]);
}

#[test]
fn leader_of_frozen_servers_leads_again_later() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 5);
    let args = ["elect", "--observe", "--json", "--every", "100ms", "x"];
    let observer = start(&sandbox, &servers.urls(), &args);
    let leader = lead(&sandbox, &servers.urls(), "a", &[]);
    until_led(&sandbox, 1);
    let command = sandbox.pid_in("a.pid");
    let seen = |event: &str, count: usize| {
        until(&format!("{count} times {event}"), || {
            let told = changes(&sandbox, "stdout-1");
            told.iter()
                .filter(|change| change["event"] == event)
                .count()
                >= count
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
    let ended = observer.wait();
    assert_eq!(ended.code(), 143, "{ended:?}");
    let told = changes(&sandbox, "stdout-1");
    let led = told
        .iter()
        .filter_map(|change| change["leader"]["fence"].as_u64());
    let led: Vec<u64> = led.collect();
    assert!(
        led.is_sorted() && led.last() == fences(&sandbox).last(),
        "{led:?}"
    );
    drop(leader);
}

/// Waits for three times the TTL of [`lead`], the longest time that a client asks a store that never
/// answered.
fn outlast_an_outage(server: &mut RedisServer) {
    server.kill();
    let began = SystemClock.now();
    until("the outage is long", || {
        SystemClock.now().since(began) > Duration::from_secs(9)
    });
    server.restart();
}

#[test]
fn standby_survives_an_outage_longer_than_the_ttl() {
    let sandbox = Sandbox::new();
    let mut server = RedisServer::start();
    let first = lead(&sandbox, &[server.url()], "a", &[]);
    until_led(&sandbox, 1);
    let standby = lead(&sandbox, &[server.url()], "b", &[]);
    standby.says("waiting for lock");
    first.signal(Signal::SIGKILL);
    until_gone(sandbox.pid_in("a.pid"));
    outlast_an_outage(&mut server);
    until_led(&sandbox, 2);
    assert_eq!(leader(&sandbox, &[server.url()]), "b");
    standby.says("Connection refused");
}

#[test]
fn waiter_without_limit_survives_an_outage() {
    let sandbox = Sandbox::new();
    let mut server = RedisServer::start();
    server.command(&["SET", "x", "another-library", "PX", "600000"]);
    let args = ["run", "--ttl", "3s", "x", "--", "sh", "-c", "exit 3"];
    let waiter = start(&sandbox, &[server.url()], &args);
    waiter.says("waiting for lock");
    // The lock is gone with the data.
    outlast_an_outage(&mut server);
    let ended = waiter.wait();
    assert_eq!(ended.code(), 3, "{ended:?}");
}

/// A set of three with one dead, and the addresses for a user who may take locks, but write no records: an
/// announcement is tried again and again.
fn set_without_records(sandbox: &Sandbox) -> (RedisSet, Vec<String>) {
    let mut servers = initialized_quorum(sandbox, 3);
    let let_in = |server: &RedisServer| {
        let rules = ["on", ">secret", "~*", "&*", "+@all", "-hset"];
        server.command(&[&["ACL", "SETUSER", "ann"], &rules[..]].concat());
        format!("redis://ann:secret@127.0.0.1:{}", server.port())
    };
    let urls = servers.iter().map(let_in).collect();
    servers[2].kill();
    (servers, urls)
}

#[test]
fn unannounced_leader_can_be_ended() {
    let sandbox = Sandbox::new();
    let (servers, urls) = set_without_records(&sandbox);
    let args = ["elect", "--ttl", "60s", "--json", "x", "--", "touch", "ran"];
    let candidate = start(&sandbox, &urls, &args);
    candidate.says(r#""event":"acquired""#);
    candidate.signal(Signal::SIGTERM);
    let ended = candidate.wait();
    assert_eq!(ended.code(), 143, "{ended:?}");
    for server in servers.iter().take(2) {
        until("the lock is free", || {
            server.command(&["EXISTS", "x"]) == Reply::Integer(0)
        });
    }
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn unannounceable_leader_ends_after_a_ttl() {
    let sandbox = Sandbox::new();
    let (_servers, urls) = set_without_records(&sandbox);
    let began = SystemClock.now();
    let args = ["elect", "--ttl", "3s", "x", "--", "touch", "ran"];
    run(&sandbox, &urls, &args).fails(69, &["+hset"]);
    let took = SystemClock.now().since(began);
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn leader_lost_before_announcing_campaigns_again() {
    let sandbox = Sandbox::new();
    let (servers, urls) = set_without_records(&sandbox);
    let candidate = lead(&sandbox, &urls, "a", &["--json"]);
    candidate.says(r#""event":"acquired""#);
    let command = |command: &[&str]| {
        servers
            .iter()
            .take(2)
            .for_each(|server| drop(server.command(command)));
    };
    command(&["DEL", "x"]);
    candidate.says(r#""event":"lost""#);
    command(&["ACL", "SETUSER", "ann", "+hset"]);
    until_led(&sandbox, 1);
    assert_eq!(leader(&sandbox, &servers.urls()), "a");
}

#[test]
fn command_decides_the_code_without_a_server() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    sandbox.gate("go");
    let script = "echo $LEASEHOLD_FENCE >> fences; read go < go; exit 3";
    let args = ["elect", "--ttl", "60s", "x", "--", "sh", "-c", script];
    let leader = start(&sandbox, &[server.url()], &args);
    until_led(&sandbox, 1);
    server.freeze();
    sandbox.open_gate("go");
    let ended = leader.wait();
    ended.fails(3, &["warning: "]);
    server.thaw();
}

#[test]
fn silent_servers_are_69_at_first() {
    let sandbox = Sandbox::new();
    let urls = ["redis://127.0.0.1:1".to_owned()];
    let args = ["elect", "--ttl", "1s", "x", "--", "touch", "ran"];
    run(&sandbox, &urls, &args).fails(69, &["127.0.0.1:1"]);
    run(&sandbox, &urls, &["elect", "--observe", "--once", "x"]).fails(69, &["127.0.0.1:1"]);
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn wrong_password_is_77_for_observers_too() {
    let sandbox = Sandbox::new();
    let server = RedisServer::builder().password("right").start();
    let wrong = [format!("redis://:secret@127.0.0.1:{}", server.port())];
    for args in [
        &["elect", "x", "--", "touch", "ran"][..],
        &["elect", "--observe", "x"],
        &["elect", "--observe", "--once", "x"],
    ] {
        let ended = run(&sandbox, &wrong, args);
        ended.fails(77, &[&format!("127.0.0.1:{}", server.port())]);
        assert!(!ended.stderr.contains("secret"), "{ended:?}");
    }
    assert!(!sandbox.path("ran").exists());
}
