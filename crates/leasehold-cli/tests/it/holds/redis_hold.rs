//! `hold` where locks are leases.

use std::io::pipe;

use leasehold_testkit::servers::RedisServer;
use serde_json::Value;

use crate::holds::hold::{Holding, check_its_generation};
use crate::run::redis::{initialized_quorum, run};
use crate::support::harness::Sandbox;

#[test]
fn redis_lock_is_held_until_stdin_or_signal() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    check_its_generation(&sandbox, &server.url(), true);
    let servers = initialized_quorum(&sandbox, 5);
    check_its_generation(&sandbox, &servers.urls().join(","), true);
}

#[test]
fn a_loss_is_a_second_line_and_76() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let holding = Holding::start(&sandbox, &server.url(), &["--ttl", "3s", "x"]);
    holding.held(&sandbox);
    server.command(&["DEL", "x"]);
    let ended = holding.running.wait();
    ended.fails(76, &[r#"lost lock "x": the lease vanished"#]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{ended:?}");
    let lost: Value = serde_json::from_str(lines[1]).unwrap();
    assert_eq!(
        (&lost["version"], &lost["event"]),
        (&1.into(), &"lost".into())
    );
    assert_eq!(lost["lock"], "x");
    assert!(lost["reason"].as_str().unwrap().contains("vanished"));
}

#[test]
fn unnoticed_loss_is_reported_at_the_end() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let holding = Holding::start(&sandbox, &server.url(), &["--ttl", "60s", "x"]);
    holding.held(&sandbox);
    server.command(&["DEL", "x"]);
    drop(holding.stdin);
    let ended = holding.running.wait();
    ended.fails(76, &[r#"lost lock "x": the lease vanished"#]);
    assert!(ended.stdout.contains(r#""event":"lost""#), "{ended:?}");
}

#[test]
fn who_cannot_be_told_leaves_no_lease() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let (reader, stdin) = pipe().unwrap();
    let (closed, stdout) = pipe().unwrap();
    drop(closed);
    let mut command = sandbox.without_store();
    command.env("LEASEHOLD_STORE", server.url());
    command.args(["hold", "x"]).stdin(reader).stdout(stdout);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(74), "{output:?}");
    let urls = [server.url()];
    assert_eq!(run(&sandbox, &urls, &["run", "-n", "x", "true"]).code(), 0);
    drop(stdin);
}

#[test]
fn permits_and_readers_are_held_together() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    for option in ["--permits=2", "--shared"] {
        let take = || Holding::start(&sandbox, &server.url(), &["-n", option, "x"]);
        let (first, second) = (take(), take());
        let held = first.held(&sandbox);
        second.held(&sandbox);
        if option == "--shared" {
            assert_eq!(held["mode"], "shared");
        } else {
            assert_eq!(
                (&held["mode"], &held["permits"]),
                (&"permit".into(), &2.into())
            );
            take().running.wait().fails(75, &[]);
        }
        let urls = [server.url()];
        run(&sandbox, &urls, &["run", "-n", "x", "true"]).fails(75, &[]);
        drop((first.stdin, second.stdin));
        assert_eq!(
            (first.running.wait().code(), second.running.wait().code()),
            (0, 0)
        );
    }
}

#[test]
fn a_ttl_that_is_too_long_is_refused() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let holding = Holding::start(&sandbox, &server.url(), &["--ttl", "61s", "x"]);
    holding
        .running
        .wait()
        .fails(64, &["TTL 1m 1s exceeds", "maximum, 1m"]);
}
