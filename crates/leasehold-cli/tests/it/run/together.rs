//! Several locks as one, shared locks, permits, and nested runs.

use std::fs;

use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::harness::Sandbox;
use crate::support::processes::until_gone;
use crate::support::program::{Running, assert_fields, sh};
use crate::support::stores::{TestStore, on_stores};

fn status(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.run(&format!("status --json {name}")).json()
}

on_stores!(opposite_orders_do_not_deadlock: file redis redis_quorum zookeeper);

fn opposite_orders_do_not_deadlock(sandbox: &TestStore) {
    const RUNS: usize = 9;
    fs::write(sandbox.path("count"), "0\n").unwrap();
    let add = "n=$(cat count); sleep 0.01; echo $((n + 1)) > count";
    let orders = [
        "a --also b --also c",
        "c --also b --also a",
        "b --also c --also a",
    ];
    let runs = orders.iter().cycle().take(RUNS);
    let runs = runs.map(|order| sandbox.start(&sh(&format!("run {order}"), add)));
    for run in runs.collect::<Vec<Running>>() {
        run.wait().succeeds();
    }
    assert_eq!(sandbox.line_in("count"), RUNS.to_string());
}

on_stores!(one_lost_lock_frees_the_others: redis redis_quorum);

fn one_lost_lock_frees_the_others(sandbox: &TestStore) {
    let holder = sandbox.hold("--ttl 4s b --also a --also c", "pid");
    sandbox.delete("c");
    until_gone(sandbox.pid_in("pid"));
    let ended = holder.wait();
    ended.fails(76, &[r#"lost lock "c": the lease vanished"#]);
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    sandbox.run("run -n a --also b true").succeeds();
}

on_stores!(readers_and_permits_share_a_lock: file redis redis_quorum postgres etcd zookeeper);

fn readers_and_permits_share_a_lock(sandbox: &TestStore) {
    let reader = sandbox.hold("-s deploy", "reader");
    sandbox.run("run -n -s deploy true").succeeds();
    sandbox.until_named("run -n deploy true", &["shared"]);
    let mode = &status(sandbox, "deploy")["holders"][0]["mode"];
    assert_eq!(mode, "shared");

    let one = sandbox.hold("--permits 2 workers", "one");
    sandbox.run("run -n --permits 2 workers true").succeeds();
    for wait in ["-n", ""] {
        let ended = sandbox.run(&format!("run {wait} --permits 3 workers touch ran"));
        ended.fails(64, &["workers", "in use with 2 permits, not 3"]);
    }
    assert!(!sandbox.path("ran").exists());
    sandbox.until_named("run -n workers true", &["one of 2 permits"]);
    sandbox.run("run -n -s workers true").fails(75, &[]);

    sandbox.finish(reader);
    one.wait().succeeds();
    sandbox.run("run -n deploy true").succeeds();
}

on_stores!(status_counts_the_permits_in_use: file redis redis_quorum);

fn status_counts_the_permits_in_use(sandbox: &TestStore) {
    let has_queue = sandbox.has_leases();
    let holders = ["one", "two"].map(|name| sandbox.hold("--permits 2 workers", name));
    let busy = sandbox.run("run -n --permits 2 workers touch ran");
    busy.fails(75, &["workers", "held by leasehold", "one of 2 permits"]);
    let third = sandbox.start("run -v --permits 2 workers touch ran");
    third.says("for lock \"workers\"");
    let mut text = String::new();
    // A client may register itself a moment after it takes its lock.
    until("the status names them all", || {
        text = sandbox.run("status workers").stdout;
        let known = |pid: i32| text.contains(&format!("(pid {pid} on "));
        holders.iter().all(|holder| known(holder.pid())) && (!has_queue || known(third.pid()))
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "workers: 2 of 2 permits are held");
    assert_eq!(
        text.matches(", one of 2 permits").count(),
        lines.len() - 1,
        "{text}"
    );
    assert_eq!(lines.len(), if has_queue { 4 } else { 3 }, "{text}");
    let shown = status(sandbox, "workers");
    assert_eq!(shown["permits"], json!({"total": 2, "held": 2}));
    assert_fields(
        &shown["holders"][1],
        json!({"mode": "permit", "permits": 2}),
    );
    if has_queue {
        assert!(lines[3].contains("1st in the queue"), "{text}");
        assert_eq!(shown["waiters"][0]["permits"], 2);
    }
    assert!(!sandbox.path("ran").exists());
    sandbox.finish(third);
    assert!(holders.into_iter().all(|holder| holder.wait().code() == 0));
    assert!(sandbox.path("ran").exists());
    assert!(status(sandbox, "other")["permits"].is_null());
}

on_stores!(nested_run_uses_the_current_lease: file redis redis_quorum);

fn nested_run_uses_the_current_lease(sandbox: &TestStore) {
    let script = r#"echo $LEASEHOLD_FENCE
        "$LEASEHOLD" run --nested x -- sh -c 'echo $LEASEHOLD_FENCE; exit 3'; echo $?
        "$LEASEHOLD" run x -- true; echo $?"#;
    let ended = sandbox.run(&sh("run x", script));
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines, [lines[0], lines[0], "3", "64"], "{ended:?}");
    let ended = sandbox.run(&sh("run -s x", script));
    ended.fails(
        0,
        &["the outer run shares the lock", "held by an outer run"],
    );
}

on_stores!(nested_run_under_other_prefix_locks_itself: redis redis_quorum);

/// A lock of the same name under another prefix, or in another database, is another lock.
fn nested_run_under_other_prefix_locks_itself(sandbox: &TestStore) {
    let servers = sandbox.redis();
    let mut elsewhere = vec!["?prefix=app:"];
    if servers.iter().count() == 1 {
        // A quorum is initialized in one database.
        elsewhere.extend(["/3", "/3?prefix=app:"]);
    }
    for behind in elsewhere {
        let urls = servers.urls();
        let urls: Vec<String> = urls.iter().map(|url| format!("{url}{behind}")).collect();
        let script = format!(
            r#""$LEASEHOLD" run --store '{}' --nested x -- sh -c 'echo $LEASEHOLD_RUN'; echo $?"#,
            urls.join(",")
        );
        let ended = sandbox.run(&sh("run x", &script));
        let lines: Vec<&str> = ended.stdout.lines().collect();
        assert_eq!(lines[1], "0", "{ended:?}");
        assert_eq!(lines[0].matches(r#""name":"x""#).count(), 2, "{ended:?}");
    }
}

on_stores!(nested_run_under_a_lost_lease_is_76: redis redis_quorum);

fn nested_run_under_a_lost_lease_is_76(sandbox: &TestStore) {
    // The next renewal, at which the outer run would notice, is far away.
    let script = r#"echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done
        "$LEASEHOLD" run --nested x -- touch ran; echo code-$?"#;
    let outer = sandbox.start(&sh("run --ttl 60s x", script));
    sandbox.pid_in("pid");
    sandbox.delete("x");
    sandbox.let_go();
    let ended = outer.wait();
    assert_eq!(ended.stdout, "code-76\n", "{ended:?}");
    ended.fails(76, &["the outer run no longer holds it"]);
    assert!(!sandbox.path("ran").exists());
}

on_stores!(lock_delay_applies_after_unclean_ends_only: redis redis_quorum);

fn lock_delay_applies_after_unclean_ends_only(sandbox: &TestStore) {
    sandbox
        .run("run --ttl 5s --lock-delay 50s x true")
        .succeeds();
    let lost = sandbox.run("run --ttl 5s --lock-delay 50s --max-hold 3s x sleep 1000");
    lost.fails(76, &["--max-hold reached"]);
    sandbox
        .run("run -n x true")
        .fails(75, &["is held by leasehold"]);
    let holder = sandbox.hold("--ttl 5s --lock-delay 50s y", "pid");
    holder.signal(Signal::SIGKILL);
    until_gone(sandbox.pid_in("pid"));
    sandbox.run("run -w 7s y true").fails(75, &["is held by"]);
}
