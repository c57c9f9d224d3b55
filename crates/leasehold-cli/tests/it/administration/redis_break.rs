//! `break`, `ls` and `waiters` on one Redis and on five.

use leasehold_testkit::servers::{RedisServer, Reply, until};
use serde_json::Value;

use crate::run::redis::{initialized_quorum, run, start};
use crate::support::harness::{Running, Sandbox};

/// Holds `x` so that its fence is shown at once; returns that fence, too.
fn hold(sandbox: &Sandbox, urls: &[String], ttl: &str) -> (Running, String) {
    let script = "echo $LEASEHOLD_FENCE > fence; while [ ! -e go ]; do sleep 0.02; done";
    let args = ["run", "--ttl", ttl, "x", "--", "sh", "-c", script];
    let holder = start(sandbox, urls, &args);
    let fence = sandbox.line_in("fence");
    let number: u64 = fence.parse().unwrap();
    assert_eq!(status(sandbox, urls)["holders"][0]["fence"], number);
    (holder, fence)
}

fn json(sandbox: &Sandbox, urls: &[String], args: &[&str]) -> Value {
    let ended = run(sandbox, urls, &[args, &["--json"]].concat());
    assert_eq!(ended.code(), 0, "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

fn status(sandbox: &Sandbox, urls: &[String]) -> Value {
    json(sandbox, urls, &["status", "x"])
}

fn break_with(sandbox: &Sandbox, urls: &[String], fence: &str, options: &[&str]) -> Value {
    let args = ["break", "x", "--fence", fence];
    json(sandbox, urls, &[&args, options].concat())
}

/// Asserts that the holder notices the break and ends its command, and that no other client gets the
/// lock until the lease would have ended.
fn assert_broken_at_its_end(sandbox: &Sandbox, urls: &[String]) {
    let (holder, fence) = hold(sandbox, urls, "6s");
    let without = run(sandbox, urls, &["break", "x"]);
    without.fails(
        64,
        &[
            "nothing is broken without --fence",
            &format!("--fence {fence}"),
        ],
    );
    let other = run(sandbox, urls, &["break", "x", "--fence", "7"]);
    other.fails(64, &["not with fence 7; nothing is broken", &fence]);
    assert_eq!(status(sandbox, urls)["broken"], Value::Null);

    let broken = break_with(sandbox, urls, &fence, &["--reason", "host is gone"]);
    assert_eq!(
        (&broken["version"], &broken["lock"]),
        (&1.into(), &"x".into())
    );
    assert_eq!(broken["members"], urls.len());
    assert!(
        broken["reserved_for_ms"]
            .as_u64()
            .is_some_and(|left| left <= 6000)
    );
    assert_eq!(broken["broken"]["fence"].to_string(), fence);
    assert_eq!(broken["broken"]["reason"], "host is gone");
    let user = broken["broken"]["user"].as_str();
    assert!(user.is_some_and(|user| !user.is_empty()), "{broken}");
    let shown = status(sandbox, urls);
    if shown["held"] == true {
        assert_eq!(shown["holders"][0]["broken"], true, "{shown}");
    }
    let text = run(sandbox, urls, &["status", "x"]).stdout;
    assert!(
        text.contains(&format!("the lease with fence {fence} was broken at ")),
        "{text}"
    );
    assert!(text.contains(": host is gone\n"), "{text}");
    assert!(
        text.starts_with("x: was held by ") || text.starts_with("x: free\n"),
        "{text}"
    );

    let ended = holder.wait();
    ended.fails(
        76,
        &[
            "an operator broke the lock",
            "was broken by ",
            ": host is gone",
        ],
    );
    let next = ["run", "x", "--", "sh", "-c", "echo $LEASEHOLD_FENCE"];
    let next = run(sandbox, urls, &next);
    assert_eq!(next.code(), 0, "{next:?}");
    let later: u64 = next.stdout.trim().parse().unwrap();
    assert!(later > fence.parse().unwrap());
    let kept = status(sandbox, urls);
    assert_eq!(kept["held"], false);
    assert_eq!(
        kept["broken"]["fence"].to_string(),
        fence,
        "also afterwards"
    );
}

#[test]
fn broken_lock_stays_reserved_until_lease_end() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    assert_broken_at_its_end(&sandbox, &[server.url()]);
}

#[test]
fn majority_of_five_breaks_a_lock() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 5);
    assert_broken_at_its_end(&sandbox, &servers.urls());
}

#[test]
fn lock_broken_at_once_goes_to_next_waiter() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let urls = [server.url()];
    let (holder, fence) = hold(&sandbox, &urls, "15s");
    let script = "echo $LEASEHOLD_FENCE > next";
    let waiter = start(&sandbox, &urls, &["run", "x", "--", "sh", "-c", script]);
    let pid = waiter.pid();
    until("it waits", || {
        let shown = json(&sandbox, &urls, &["waiters", "x"]);
        assert_eq!(
            (&shown["version"], &shown["queue"]),
            (&1.into(), &true.into())
        );
        let first = &shown["waiters"][0];
        first["place"] == 1 && first["client"]["pid"] == pid && first["since"].is_string()
    });
    let text = run(&sandbox, &urls, &["waiters", "x"]).stdout;
    assert!(
        text.starts_with("PLACE  MODE ") && text.contains("\n1      exclusive  "),
        "{text}"
    );
    let args = ["break", "x", "--fence", &fence, "--now"];
    let broken = run(&sandbox, &urls, &args);
    assert_eq!(broken.code(), 0, "{broken:?}");
    assert!(
        broken.stdout.contains("free at once")
            && broken.stdout.contains("only a check of fences protects"),
        "{broken:?}"
    );
    let next: u64 = sandbox.line_in("next").parse().unwrap();
    assert!(next > fence.parse().unwrap());
    assert_eq!(waiter.wait().code(), 0);
    holder.wait().fails(76, &["an operator broke the lock"]);
    let text = run(&sandbox, &urls, &["waiters", "x"]).stdout;
    assert_eq!(text, "x: no waiters\n");
}

#[test]
fn break_without_majority_changes_nothing() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 3);
    let (holder, fence) = hold(&sandbox, &servers.urls(), "15s");
    servers[1].freeze();
    servers[2].freeze();
    let args = ["break", "x", "--fence", &fence];
    let failed = run(&sandbox, &servers.urls(), &args);
    servers[1].thaw();
    servers[2].thaw();
    failed.fails(69, &["no quorum"]);
    let shown = status(&sandbox, &servers.urls());
    assert_eq!(shown["broken"], Value::Null);
    assert_eq!(shown["holders"][0]["broken"], false);
    std::fs::write(sandbox.path("go"), "").unwrap();
    assert_eq!(holder.wait().code(), 0);
}

#[test]
fn readers_are_not_broken() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let urls = [server.url()];
    let script = "echo held > held; while [ ! -e go ]; do sleep 0.02; done";
    let reader = start(
        &sandbox,
        &urls,
        &["run", "-s", "x", "--", "sh", "-c", script],
    );
    sandbox.line_in("held");
    let refused = run(&sandbox, &urls, &["break", "x", "--fence", "7"]);
    refused.fails(64, &["only an exclusive lock can be broken"]);
    std::fs::write(sandbox.path("go"), "").unwrap();
    assert_eq!(reader.wait().code(), 0);
}

#[test]
fn foreign_lock_is_refused_before_the_fence() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let urls = [server.url()];
    server.command(&["SET", "x", "theirs", "PX", "60000"]);
    for args in [&["break", "x"][..], &["break", "x", "--fence", "7"]] {
        let refused = run(&sandbox, &urls, args);
        refused.fails(64, &["another library", "cannot break", "delete the key"]);
        assert!(!refused.stderr.contains("--fence"), "{refused:?}");
    }
    assert_eq!(
        server.command(&["GET", "x"]),
        Reply::Bulk("theirs".to_owned())
    );
}

#[test]
fn ls_lists_locks_of_other_libraries() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let urls = [server.url()];
    let token = "2f1c7c0ad3c911f08de90242ac120002";
    for name in ["job", "page:1"] {
        server.command(&["SET", name, token, "NX", "PX", "60000"]);
    }
    let all = run(&sandbox, &urls, &["ls"]);
    assert!(all.stdout.starts_with("no lock is held"), "{all:?}");
    let named = json(&sandbox, &urls, &["ls", "jo?"]);
    let (locks, holder) = (&named["locks"], &named["locks"][0]["holders"][0]);
    assert_eq!(
        (&locks[0]["lock"], &locks[0]["held"]),
        (&"job".into(), &true.into())
    );
    assert_eq!(holder["foreign"], true);
    assert!(
        holder["form"].as_str().unwrap().contains("redis-py"),
        "{named}"
    );
    assert!(
        holder["remaining_ms"].is_u64() && locks[1].is_null(),
        "{named}"
    );
    let text = run(&sandbox, &urls, &["ls", "job"]).stdout;
    assert!(
        text.contains("\njob ")
            && text.contains("a client of another library (the key holds 32 hex digits")
            && text.contains("or is not a lock"),
        "{text}"
    );
    // A client of ours asked for this one.
    run(&sandbox, &urls, &["run", "-n", "job", "true"]).fails(75, &["another library"]);
    let all = run(&sandbox, &urls, &["ls"]).stdout;
    assert!(all.contains("\njob ") && !all.contains("page"), "{all}");
    let prefixed = [format!("{}?prefix=page:", server.url())];
    let all = run(&sandbox, &prefixed, &["ls"]).stdout;
    assert!(
        all.contains("\n1 ") && all.contains("a client of another"),
        "{all}"
    );
}

#[test]
fn ls_says_where_members_disagree() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 5);
    let (holder, fence) = hold(&sandbox, &servers.urls(), "15s");
    until("all five have it", || {
        let all = json(&sandbox, &servers.urls(), &["ls", "x*"]);
        all["locks"][0]["agreed"] == true
    });
    let all = run(&sandbox, &servers.urls(), &["ls", "x"]);
    assert!(
        all.stdout.contains("\nx ") && all.stdout.contains("  leasehold (pid "),
        "{all:?}"
    );
    assert!(all.stdout.contains(&format!("  {fence}  ")), "{all:?}");
    // A lock that a client left on a minority.
    let stray = format!("{:016x}.{:032x}", 7, 9);
    for server in servers.iter().take(2) {
        let reply = server.command(&["SET", "y", &stray, "PX", "60000"]);
        assert!(matches!(reply, Reply::Status(_)), "{reply:?}");
    }
    let all = run(&sandbox, &servers.urls(), &["ls"]);
    let line = all.stdout.lines().find(|line| line.starts_with("y "));
    let line = line.unwrap_or_default();
    let who = "client 0000000000000007, on 2 of 5 servers (no majority)";
    assert!(line.ends_with(who), "{line}");
    let all = json(&sandbox, &servers.urls(), &["ls"]);
    let stray = &all["locks"][1];
    assert_eq!(
        (&stray["held"], &stray["agreed"]),
        (&false.into(), &false.into())
    );
    assert_eq!(
        (&all["members"], &stray["holders"][0]["members"]),
        (&5.into(), &2.into())
    );
    std::fs::write(sandbox.path("go"), "").unwrap();
    assert_eq!(holder.wait().code(), 0);
}
