//! Commands that are run once, on one Redis server and on five durable ones.

use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold_redis::RedisStore;
use leasehold_testkit::servers::{RedisServer, RedisSet, until};
use nix::sys::signal::Signal;

use crate::results::once::{assert_one_result, attempt};
use crate::support::harness::{Sandbox, id};
use crate::support::processes::{guardian_of, until_gone, until_stopped};
use crate::support::program::sh;
use crate::support::stores::{TestStore, on_stores};

#[test]
fn result_outlives_restarts_of_all_servers() {
    let (sandbox, mut servers) = Sandbox::on_durable_quorum(5);
    let script = "echo x >> ran; echo \"done under $LEASEHOLD_FENCE\" | tee -a log";
    let command = sh("once pay/17", script);
    let first = sandbox.run(&command);
    for server in servers.iter_mut().take(2) {
        server.kill();
    }
    let with_three = sandbox.run(&command);
    for server in servers.iter_mut() {
        server.restart();
    }
    let restarted = sandbox.run(&command);
    for ended in [&first, &with_three, &restarted] {
        assert_eq!(
            (ended.code(), &ended.stdout),
            (0, &first.stdout),
            "{ended:?}"
        );
    }
    assert_eq!(sandbox.lines_in("ran").len(), 1);
    for server in servers.iter_mut().take(3) {
        server.kill();
    }
    let other = sandbox.run("once -w 1s other -- touch touched");
    other.fails(69, &["2 of 5 servers have a vote"]);
    assert!(!sandbox.path("touched").exists());
}

#[test]
fn server_with_a_new_disk_denies_no_result() {
    let durable = RedisSet::start_each(3, &RedisServer::builder().durable());
    let (sandbox, mut servers) = Sandbox::on_initialized(durable, "--max-ttl 3s");
    let mut nth = servers.iter_mut();
    let [first, second, third] = [(); 3].map(|()| nth.next().unwrap());
    let script = "echo x >> ran; echo \"done under $LEASEHOLD_FENCE\"";
    let request = sh("once --ttl 3s -w 1s pay/17", script);
    third.kill();
    let shown = sandbox.run(&request).succeeds();
    third.restart();
    second.command(&["FLUSHALL"]);
    first.kill();
    let readmit = format!("members readmit {}", second.url());
    sandbox.run(&readmit).succeeds();
    // The two others have forgotten no lease that could be held still.
    until("locks to be granted again", || {
        let other = sandbox.run("run --ttl 3s -w 1s other -- true");
        other.code() == 0
    });
    let silent = format!(
        "too few servers can deny a result: no answer from 127.0.0.1:{}, and others lost",
        first.port()
    );
    sandbox.run(&request).fails(69, &[&silent]);
    assert_eq!(sandbox.lines_in("ran").len(), 1);
    first.restart();
    let again = sandbox.run(&request).succeeds();
    assert_eq!(again.stdout, shown.stdout);
    assert_eq!(sandbox.lines_in("ran").len(), 1);
}

#[test]
fn init_makes_once_work_after_a_first_lock() {
    let servers = RedisSet::start_each(3, &RedisServer::builder().durable());
    let sandbox = Sandbox::on(&servers.urls());
    let early = sandbox.run("run -n x true");
    assert_eq!(early.code(), 69, "{early:?}");
    let refused = sandbox.run("once pay/1 touch ran");
    refused.fails(
        69,
        &["too few servers can deny a result", "`leasehold init`"],
    );
    let members = sandbox.run("members").stdout;
    assert!(members.contains("\nonce: possible in "), "{members}");
    sandbox.run("init").succeeds();
    let members = sandbox.run("members").succeeds().stdout;
    assert!(members.contains("\nonce: possible\n"), "{members}");
    sandbox.run("once pay/1 touch ran").succeeds();
    let again = sandbox.run("init").succeeds();
    assert!(again.stdout.starts_with("nothing to do: "), "{again:?}");
}

#[test]
fn init_after_granted_locks_needs_the_operators_word() {
    let servers = RedisSet::start_each(3, &RedisServer::builder().durable());
    let sandbox = Sandbox::on(&servers.urls());
    let first = RedisStore::new(servers.urls()).unwrap();
    let first = Client::new(first.max_ttl(Duration::from_secs(3)));
    until("a lock to be granted", || {
        let lock = first.lock("x").ttl(Duration::from_secs(3));
        lock.try_acquire().is_ok_and(|guard| guard.is_some())
    });
    let refused = sandbox.run("init");
    refused.fails(
        78,
        &["locks may have been granted", "`leasehold init --new`"],
    );
    let once = "once --ttl 3s pay/1 touch ran";
    sandbox.run(once).fails(69, &["too few servers"]);
    sandbox.run("init --new").succeeds();
    sandbox.run(once).succeeds();
}

#[test]
fn results_are_replayed_and_survive_removals() {
    let durable = RedisSet::start_each(5, &RedisServer::builder().durable());
    let (sandbox, servers) = Sandbox::on_initialized(durable, "--max-ttl 3s");
    let first = "once --ttl 3s -w 1s pay/1 -- echo first";
    let shown = sandbox.run(first).succeeds();
    let fifth = servers.iter().next_back().unwrap().url();
    sandbox.run(&format!("members remove {fifth}")).succeeds();
    let four: Vec<String> = servers.urls().into_iter().take(4).collect();
    let sandbox = Sandbox::on(&four);
    let members = sandbox.run("members").succeeds().stdout;
    assert!(members.contains("\nonce: possible\n"), "{members}");
    sandbox.run("once --ttl 3s -w 1s pay/2 -- true").succeeds();
    // Their records say that all lost something a moment ago. They have the first result.
    let now = SystemClock.wall().as_micros().to_string();
    for server in servers.iter() {
        server.command(&["HSET", "leasehold:member_record", "since", &now]);
    }
    until("the servers to have votes again", || {
        sandbox.run("run --ttl 3s -n other -- true").code() == 0
    });
    let replayed = sandbox.run(first).succeeds();
    assert_eq!(replayed.stdout, shown.stdout);
    let refused = sandbox.run("once --ttl 3s -w 1s pay/3 -- true");
    refused.fails(69, &["too few servers can deny a result"]);
    // That would do nothing.
    assert!(!refused.stderr.contains("leasehold init"), "{refused:?}");
}

#[test]
fn undurable_servers_are_refused_by_name() {
    let (sandbox, servers) = Sandbox::on_quorum(3);
    let ids: Vec<String> = servers.iter().map(id).collect();
    let named = format!("3 of 3 servers are not durable: {}", ids.join(", "));
    let refused = sandbox.run("once x -- touch touched");
    refused.fails(64, &["must outlive restarts", &named]);
    assert!(!sandbox.path("touched").exists());
}

on_stores!(stopped_caller_commits_nothing: redis redis_quorum);

/// One that is stopped after its command has ended, while the next one begins and commits.
fn stopped_caller_commits_nothing(sandbox: &TestStore) {
    sandbox.gate("gate-1");
    sandbox.gate("gate-2");
    let first = sandbox.start(&attempt("1"));
    let command = sandbox.pid_in("pid-1");
    let guardian = guardian_of(command);
    first.signal(Signal::SIGSTOP);
    until_stopped(first.pid());
    sandbox.open_gate("gate-1");
    until_gone(command);
    until_gone(guardian);
    let second = sandbox.start(&attempt("2"));
    sandbox.pid_in("pid-2");
    // It wakes up while the next one is at it.
    first.signal(Signal::SIGCONT);
    first.wait().fails(76, &["lost"]);
    sandbox.open_gate("gate-2");
    let shown = [second.wait(), sandbox.run(&attempt("3"))];
    assert_one_result(sandbox, &[&shown[0], &shown[1]]);
    let ran = sandbox.lines_in("ran");
    assert_eq!(ran.len(), 2);
    assert_eq!(shown[1].stdout, format!("done under {}\n", ran[1]));
}

#[test]
fn unanswered_commit_is_reported_as_unknown() {
    let (sandbox, server) = Sandbox::on_redis();
    sandbox.gate("gate-1");
    let first = sandbox.start(&attempt("1"));
    let command = sandbox.pid_in("pid-1");
    server.freeze();
    sandbox.open_gate("gate-1");
    until_gone(command);
    let told = first.wait();
    server.thaw();
    assert!([69, 76].contains(&told.code()), "{told:?}");
    if told.code() == 69 {
        told.fails(69, &["CMD ended with 0", "it is unknown whether"]);
    }
    // Either it was committed after all, or it is run again: one result in any case.
    let plain = r#"echo "$LEASEHOLD_FENCE" >> ran; echo "done under $LEASEHOLD_FENCE" "#;
    let command = sh("once --ttl 3s --payload EUR-12 pay/17", plain);
    let shown = [(); 2].map(|()| sandbox.run(&command));
    assert_one_result(&sandbox, &[&shown[0], &shown[1]]);
    let ran = sandbox.lines_in("ran").len();
    assert!((1..=2).contains(&ran), "run {ran} times");
}
