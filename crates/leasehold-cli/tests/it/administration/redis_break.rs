//! `break` and `ls` on one Redis server and on a quorum.

use leasehold_testkit::servers::{Reply, until};
use serde_json::{Value, json};

use crate::support::harness::Sandbox;
use crate::support::program::{Running, assert_fields};
use crate::support::stores::{TestStore, on_stores};

/// Holds `x`; returns the fence, which `status` shows at once.
fn hold(sandbox: &Sandbox, ttl: &str) -> (Running, u64) {
    let holder = sandbox.hold(&format!("--ttl {ttl} x"), "holder");
    let fence = sandbox.fence("holder");
    assert_eq!(status(sandbox)["holders"][0]["fence"], fence);
    (holder, fence)
}

fn status(sandbox: &Sandbox) -> Value {
    sandbox.run("status x --json").json()
}

#[test]
fn command_that_ends_under_a_broken_lock_learns_who_broke_it() {
    let (sandbox, _server) = Sandbox::on_redis();
    // It renews after 6 s at the earliest.
    let (holder, _) = hold(&sandbox, "60s");
    sandbox
        .run("break x --yes --now --reason outage")
        .succeeds();
    sandbox.let_go();
    holder
        .wait()
        .fails(76, &["lost lock \"x\"", "was broken by", "outage"]);
}

#[test]
fn break_without_majority_changes_nothing() {
    let (sandbox, servers) = Sandbox::on_quorum(3);
    let (holder, fence) = hold(&sandbox, "15s");
    servers[1].freeze();
    servers[2].freeze();
    let failed = sandbox.run(&format!("break x --fence {fence}"));
    servers[1].thaw();
    servers[2].thaw();
    failed.fails(69, &["no quorum"]);
    let shown = status(&sandbox);
    assert!(shown["broken"].is_null(), "{shown}");
    assert_eq!(shown["holders"][0]["broken"], false);
    sandbox.finish(holder);
}

/// The owners that hold `x`.
fn owners(sandbox: &Sandbox) -> Vec<String> {
    let shown = status(sandbox);
    let holders = shown["holders"].as_array().unwrap();
    let owner = |holder: &Value| holder["owner"].as_str().unwrap().to_owned();
    holders.iter().map(owner).collect()
}

on_stores!(one_of_several_holders_is_broken: redis redis_quorum);

fn one_of_several_holders_is_broken(sandbox: &TestStore) {
    for mode in ["-s", "--permits 2"] {
        let stuck = sandbox.start(&format!("run --ttl 15s {mode} x -- sleep 1000"));
        until("it holds", || owners(sandbox).len() == 1);
        let owner = owners(sandbox).remove(0);
        let other = sandbox.hold(&format!("--ttl 15s {mode} x"), "other");
        sandbox.run("break x").fails(64, &["--dry-run shows"]);
        sandbox.run("break x --yes").fails(64, &["--dry-run shows"]);
        let shown = sandbox.run("break x --dry-run").succeeds().stdout;
        assert!(shown.contains(&format!("--owner {owner} would")), "{shown}");
        let args = format!("break x --owner {owner} --reason hangs");
        let told = sandbox.run(&args).succeeds().stdout;
        assert!(
            told.contains(&format!("broken, owner {owner}; closed for ")),
            "{told}"
        );
        sandbox.finish(other);
        // The holder ends its command at its next renewal, and the lock opens long before the end of the lease.
        stuck.wait().fails(76, &["was broken by ", ": hangs"]);
        sandbox.run("run -w 5s x true").succeeds();
        std::fs::remove_file(sandbox.path("go")).unwrap();
        std::fs::remove_file(sandbox.path("other")).unwrap();
    }
}

/// The script may still work when it learns of the break.
#[test]
fn broken_hold_leaves_the_lock_closed() {
    let (sandbox, _server) = Sandbox::on_redis();
    let hold = sandbox.start("hold --ignore-stdin --ttl 15s x");
    hold.prints("\"held\"");
    sandbox.run("break x --yes").succeeds();
    hold.wait().fails(76, &["an operator broke the lock"]);
    assert_fields(&status(&sandbox)["holders"][0], json!({"broken": true}));
}

#[test]
fn foreign_lock_is_refused_before_the_fence() {
    let (sandbox, server) = Sandbox::on_redis();
    server.command(&["SET", "x", "theirs", "PX", "60000"]);
    for args in ["break x", "break x --fence 7"] {
        let refused = sandbox.run(args);
        refused.fails(64, &["another library", "cannot break", "delete the key"]);
        assert!(!refused.stderr.contains("--fence"), "{refused:?}");
    }
    assert_eq!(server.command(&["GET", "x"]), Reply::Bulk("theirs".into()));
}

#[test]
fn ls_lists_locks_of_other_libraries() {
    let (sandbox, server) = Sandbox::on_redis();
    let token = "2f1c7c0ad3c911f08de90242ac120002";
    for name in ["job", "page:1"] {
        server.command(&["SET", name, token, "NX", "PX", "60000"]);
    }
    let all = sandbox.run("ls").stdout;
    assert!(all.starts_with("no lock is held"), "{all}");
    let named = sandbox.run("ls jo? --json").json();
    let locks = named["locks"].as_array().unwrap();
    assert_eq!(locks.len(), 1, "{named}");
    assert_fields(&locks[0], json!({"lock": "job", "held": true}));
    let holder = &locks[0]["holders"][0];
    assert_eq!(holder["foreign"], true);
    let form = holder["form"].as_str().unwrap();
    assert!(
        form.contains("redis-py") && holder["remaining_ms"].is_u64(),
        "{named}"
    );
    let text = sandbox.run("ls job").stdout;
    let form = "the key holds 32 hex digits";
    assert!(text.contains("\njob ") && text.contains(form), "{text}");
    assert!(text.contains("a client of another library"), "{text}");
    assert!(text.contains("or is not a lock"), "{text}");
    // A client of ours asked for this one.
    sandbox
        .run("run -n job true")
        .fails(75, &["another library"]);
    let all = sandbox.run("ls").stdout;
    assert!(all.contains("\njob ") && !all.contains("page"), "{all}");
    let prefixed = [format!("{}?prefix=page:", server.url())];
    let all = sandbox.run_at(&prefixed, "ls").stdout;
    assert!(
        all.contains("\n1 ") && all.contains("a client of another"),
        "{all}"
    );
}

#[test]
fn ls_says_where_members_disagree() {
    let (sandbox, servers) = Sandbox::on_quorum(5);
    let (holder, fence) = hold(&sandbox, "15s");
    until("all five have it", || {
        sandbox.run("ls x* --json").json()["locks"][0]["agreed"] == true
    });
    let all = sandbox.run("ls x").stdout;
    assert!(
        all.contains("\nx ") && all.contains(&holder.pid().to_string()),
        "{all}"
    );
    assert!(all.contains(&format!("  {fence}  ")), "{all}");
    // A lock that a client left on a minority.
    let stray = format!("{:016x}.{:032x}", 7, 9);
    for server in servers.iter().take(2) {
        let reply = server.command(&["SET", "y", &stray, "PX", "60000"]);
        assert!(matches!(reply, Reply::Status(_)), "{reply:?}");
    }
    let all = sandbox.run("ls").stdout;
    let line = all.lines().find(|line| line.starts_with("y "));
    let who = "on 2 of 5 servers, no majority";
    assert!(
        line.is_some_and(|line| line.contains("client 0000000000000007 ") && line.ends_with(who)),
        "{all}"
    );
    let all = sandbox.run("ls --json").json();
    assert_eq!(all["members"], 5);
    let stray = &all["locks"][1];
    assert_fields(stray, json!({"held": false, "agreed": false}));
    assert_eq!(stray["holders"][0]["members"], 2);
    sandbox.finish(holder);
}
