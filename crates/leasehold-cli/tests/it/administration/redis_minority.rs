//! What the rest of a quorum shows without a majority.

use leasehold_testkit::servers::RedisServer;
use serde_json::{Value, json};

use crate::support::harness::Sandbox;
use crate::support::program::assert_fields;

/// A lock is held, and only one server of the quorum answers.
#[test]
fn redis_minority_shows_what_it_knows() {
    let (sandbox, servers) = Sandbox::on_quorum(3);
    sandbox
        .run("acquire --ttl 60s --handle-file handle x")
        .succeeds();
    for server in servers.iter().skip(1) {
        server.freeze();
    }
    let header = "no majority: answers from 1 of 3 servers, 2 needed; they may be wrong";
    let status = sandbox.run("status x");
    assert_eq!(status.code(), 69, "{status:?}");
    let lines: Vec<&str> = status.stdout.lines().collect();
    assert!(lines[0].starts_with(header), "{status:?}");
    assert!(
        lines[1].starts_with("x: perhaps held by leasehold acquire (pid "),
        "{status:?}"
    );
    let listed = sandbox.run("ls");
    assert_eq!(listed.code(), 69, "{listed:?}");
    assert!(listed.stdout.starts_with(header), "{listed:?}");
    assert!(listed.stdout.contains("\nx "), "{listed:?}");
    let status = sandbox.run("status --json x").json_of_any();
    assert_fields(&status, json!({"held": Value::Null, "majority": false}));
    assert_eq!(status["holders"][0]["program"], "leasehold acquire");
    assert_eq!(status["unanswered"].as_array().unwrap().len(), 2);
    let listed = sandbox.run("ls --json").json_of_any();
    assert_fields(&listed, json!({"majority": false, "members": 3}));
    let free = sandbox.run("status -q --check y");
    assert_eq!((free.code(), &*free.stdout), (69, ""));
    for server in servers.iter().skip(1) {
        server.thaw();
    }
}

#[test]
fn redis_minority_answers_waiters_and_wait() {
    let (sandbox, servers) = Sandbox::on_quorum(3);
    sandbox
        .run("acquire --ttl 60s --handle-file handle x")
        .succeeds();
    let others = || servers.iter().skip(1);
    others().for_each(RedisServer::freeze);
    let queue = sandbox.run("waiters x");
    assert_eq!(queue.code(), 69, "{queue:?}");
    let lines: Vec<&str> = queue.stdout.lines().collect();
    assert!(lines[0].starts_with("no majority: "), "{queue:?}");
    assert!(lines[1].starts_with("x: perhaps held by "), "{queue:?}");
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.starts_with("no answer: "))
            .count(),
        2
    );
    assert_eq!(
        *lines.last().unwrap(),
        "x: its queue is known only to a majority"
    );
    let queue = sandbox.run("waiters --json x").json_of_any();
    assert_fields(&queue, json!({"waiters": Value::Null, "majority": false}));
    assert_eq!(queue["unanswered"].as_array().unwrap().len(), 2);
    let parts = [
        "cannot tell whether lock \"x\" is free: no majority: answers from 1 of 3 servers",
        "x: perhaps held by leasehold acquire",
        "no answer: ",
    ];
    sandbox.run("wait x").fails(69, &parts);
    others().for_each(RedisServer::thaw);
}

#[test]
fn redis_wait_lasts_through_an_outage() {
    let (sandbox, servers) = Sandbox::on_quorum(3);
    sandbox
        .run("acquire --ttl 60s --handle-file handle x")
        .succeeds();
    let waiting = sandbox.start("wait x");
    // Long enough for a first answer.
    sandbox.run("wait -w 2s x").fails(75, &["held by"]);
    let others = || servers.iter().skip(1);
    others().for_each(RedisServer::freeze);
    waiting.says("cannot ask the store");
    others().for_each(RedisServer::thaw);
    sandbox.run("release --handle-file handle").succeeds();
    waiting.wait().succeeds();
}
