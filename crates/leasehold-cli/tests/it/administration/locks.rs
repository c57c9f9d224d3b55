//! `status`, `ls`, `waiters`, and `break` on each store.

use leasehold_testkit::servers::{PostgresServer, until};
use serde_json::{Value, json};

use crate::support::program::{assert_fields, sh};
use crate::support::stores::{TestStore, on_stores};

fn status(sandbox: &TestStore) -> Value {
    sandbox.run("status x --json").json()
}

on_stores!(holders_and_waiters_are_shown: redis redis_quorum postgres etcd zookeeper);

fn holders_and_waiters_are_shown(sandbox: &TestStore) {
    let holder = sandbox.hold("a/b", "holder");
    let waiter = sandbox.start("run -v a/b true");
    waiter.says("1st in the queue");
    let status = sandbox.run("status a/b --json").json();
    assert_eq!(status["held"], true, "{status}");
    let shown = json!({
        "fence": sandbox.fence("holder"), "pid": holder.pid(), "mode": "exclusive"
    });
    assert_fields(&status["holders"][0], shown);
    assert!(!status.to_string().contains(PostgresServer::PASSWORD));
    let listed = sandbox.run("ls --json").json();
    assert_fields(&listed["locks"][0], json!({"lock": "a/b", "held": true}));
    let others = sandbox.run("ls --json y*").json();
    assert_eq!(others["locks"], json!([]));
    until("the waiter is shown", || {
        let shown = sandbox.run("waiters a/b --json").json();
        assert_fields(&shown, json!({"version": 1, "queue": true}));
        let first = &shown["waiters"][0];
        let place = (&first["position"], &first["client"]["pid"]);
        place == (&json!(1), &json!(waiter.pid())) && first["since"].is_string()
    });
    let text = sandbox.run("waiters a/b").stdout;
    assert!(text.starts_with("PLACE  MODE "), "{text}");
    assert!(text.contains("\n1      exclusive  "), "{text}");
    sandbox.finish(holder);
    waiter.wait().succeeds();
    assert_eq!(sandbox.run("waiters a/b").stdout, "a/b: no waiters\n");
    sandbox.run("ls").succeeds();
}

on_stores!(broken_lock_stays_closed_until_lease_end: redis redis_quorum postgres etcd zookeeper);

/// The holder notices the break and ends its command, and no other client gets the lock until the lease would have
/// ended.
fn broken_lock_stays_closed_until_lease_end(sandbox: &TestStore) {
    let holder = sandbox.hold("--ttl 6s x", "holder");
    let fence = sandbox.fence("holder");
    let without = ["nothing is broken", &format!("--fence {fence}")];
    sandbox.run("break x").fails(64, &without);
    let other = ["not with fence 7; nothing is broken", &fence.to_string()];
    sandbox.run("break x --fence 7").fails(76, &other);
    for args in ["break free", "break free --fence 7"] {
        sandbox.run(args).fails(76, &["lock \"free\" is free"]);
    }
    assert!(status(sandbox)["broken"].is_null());

    let waiter = sandbox.start(&sh("run -v x", "echo $LEASEHOLD_FENCE > next"));
    waiter.says("1st in the queue");
    let args = format!("break x --fence {fence} --reason outage --json");
    let done = sandbox.run(&args).json();
    let members = sandbox.store().split(',').count();
    assert_fields(
        &done,
        json!({"version": 1, "lock": "x", "members": members}),
    );
    let closed_for = done["closed_for_ms"].as_u64();
    assert!(closed_for.is_some_and(|millis| millis <= 6_000), "{done}");
    let broken = json!({"fence": fence, "reason": "outage"});
    assert_fields(&done["broken"], broken);
    let user = done["broken"]["user"].as_str();
    assert!(user.is_some_and(|user| !user.is_empty()), "{done}");
    // The waiter may hold the lock by now.
    let shown = status(sandbox);
    let mut holders = shown["holders"].as_array().unwrap().iter();
    if let Some(former) = holders.find(|it| it["pid"] == holder.pid()) {
        assert_eq!(former["broken"], true, "{shown}");
    }
    let text = sandbox.run("status x").stdout;
    let told = format!("the lease with fence {fence} was broken at ");
    assert!(
        text.contains(&told) && text.contains(": outage\n"),
        "{text}"
    );
    let still_held = format!("x: held by leasehold (pid {} on ", holder.pid());
    assert!(!text.contains(&still_held), "{text}");

    let reason = ["an operator broke the lock", "was broken by ", ": outage"];
    holder.wait().fails(76, &reason);
    waiter.wait().succeeds();
    assert!(sandbox.line_in("next").parse::<u64>().unwrap() > fence);
    let kept = status(sandbox);
    assert_eq!(kept["held"], false);
    assert_eq!(kept["broken"]["fence"], fence, "also afterwards");
}

on_stores!(lock_broken_at_once_goes_to_next_waiter: redis redis_quorum postgres etcd zookeeper);

fn lock_broken_at_once_goes_to_next_waiter(sandbox: &TestStore) {
    let holder = sandbox.hold("--ttl 15s x", "holder");
    let fence = sandbox.fence("holder");
    let waiter = sandbox.start(&sh("run -v x", "echo $LEASEHOLD_FENCE > next"));
    waiter.says("1st in the queue");
    let broken = sandbox.run(&format!("break x --fence {fence} --now --reason outage"));
    let text = broken.succeeds().stdout;
    assert!(text.contains("its lease is over"), "{text}");
    assert!(text.contains("only a check of fences protects"), "{text}");
    assert!(sandbox.line_in("next").parse::<u64>().unwrap() > fence);
    waiter.wait().succeeds();
    holder
        .wait()
        .fails(76, &["an operator broke the lock", ": outage"]);
    let text = sandbox.run("status x").stdout;
    assert!(text.starts_with("x: free\n"), "{text}");
    assert!(text.contains(": outage\n"), "{text}");
    assert_eq!(sandbox.run("waiters x").stdout, "x: no waiters\n");
}
