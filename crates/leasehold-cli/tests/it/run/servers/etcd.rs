//! Every kind of lock on etcd: commands under a lock, holds, handles, elections and results.

use leasehold_testkit::servers::{EtcdServer, EtcdSet, until};
use serde_json::{Value, json};

use crate::elections::elect::until_led;
use crate::support::harness::Sandbox;
use crate::support::program::{Running, assert_fields, sh};

/// A sandbox with a new etcd server.
pub(crate) fn on_etcd() -> (Sandbox, EtcdServer) {
    let server = EtcdServer::start();
    let url = format!("etcd://127.0.0.1:{}", server.port());
    (Sandbox::on(&[url]), server)
}

fn status(sandbox: &Sandbox) -> Value {
    sandbox.run("status --json x").json()
}

fn until_waiting(sandbox: &Sandbox, count: usize) {
    until(&format!("{count} wait"), || {
        status(sandbox)["waiters"].as_array().unwrap().len() == count
    });
}

#[test]
fn waiters_run_in_order_on_etcd() {
    let (sandbox, _server) = on_etcd();
    let holder = sandbox.hold("x", "held");
    let busy = sandbox.run("run -n x touch touched");
    busy.fails(75, &["lock \"x\" is held by", "expires in"]);
    sandbox.run("run -w 1s x touch touched").fails(75, &["x"]);
    assert!(!sandbox.path("touched").exists());
    let waiters: Vec<Running> = (0..4)
        .map(|mark| {
            let waiter = sandbox.start(&sh("run x", &format!("echo {mark} >> order")));
            until_waiting(&sandbox, mark + 1);
            waiter
        })
        .collect();
    sandbox.let_go();
    holder.wait().succeeds();
    for waiter in waiters {
        waiter.wait().succeeds();
    }
    assert_eq!(sandbox.lines_in("order"), ["0", "1", "2", "3"]);
    assert_eq!(sandbox.run("status x").stdout, "x: free\n");
    sandbox.run(&sh("run x", "exit 7")).fails(7, &[]);
}

#[test]
fn readers_and_permits_share_a_lock_on_etcd() {
    let (sandbox, _server) = on_etcd();
    let reader = sandbox.hold("--shared x", "held");
    sandbox.run("run --shared -n x true").succeeds();
    sandbox.run("run -n x true").fails(75, &["x"]);
    sandbox.let_go();
    reader.wait().succeeds();
    std::fs::remove_file(sandbox.path("go")).unwrap();
    let permit = sandbox.hold("--permits 2 x", "permit");
    sandbox.run("run --permits 2 -n x true").succeeds();
    sandbox
        .run("run --permits 3 -n x true")
        .fails(64, &["2 permits", "not 3"]);
    sandbox.let_go();
    permit.wait().succeeds();
}

#[test]
fn handle_holds_a_lock_on_etcd() {
    let (sandbox, _server) = on_etcd();
    let acquired = sandbox.run("acquire --ttl 20s x").succeeds();
    let handle = acquired.stdout.trim().to_owned();
    let with_handle = |args: &str| {
        let handle = ("LEASEHOLD_HANDLE", handle.as_str());
        sandbox.start_with(handle, args).wait()
    };
    assert_fields(&status(&sandbox), json!({"held": true}));
    with_handle("renew").succeeds();
    assert_eq!(status(&sandbox)["held"], true);
    with_handle("release").succeeds();
    assert_eq!(status(&sandbox)["held"], false);
    with_handle("renew").fails(76, &[]);
}

#[test]
fn result_is_kept_once_on_etcd() {
    let (sandbox, _server) = on_etcd();
    let command = sh(
        "once pay/17",
        "echo x >> ran; echo \"under $LEASEHOLD_FENCE\"",
    );
    let (first, second) = (sandbox.run(&command), sandbox.run(&command));
    assert_eq!((first.code(), second.code()), (0, 0), "{second:?}");
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(sandbox.lines_in("ran").len(), 1);
}

#[test]
fn killed_leader_is_followed_on_etcd() {
    let (sandbox, _server) = on_etcd();
    let lead = |who: &str| {
        let script =
            "echo $$ > pid-$0; echo $LEASEHOLD_FENCE >> fences; while :; do sleep 0.02; done";
        let args = format!("elect -v --ttl 3s --value {who} x");
        sandbox.start(&sh(&args, &script.replace("$0", who)))
    };
    let first = lead("a");
    until_led(&sandbox, 1);
    let second = lead("b");
    second.says("waiting for lock");
    first.signal(nix::sys::signal::Signal::SIGKILL);
    until_led(&sandbox, 2);
    until("an observer sees the second leader", || {
        let change = sandbox.run("elect --observe --once --json x").json_of_any();
        change["leader"]["value"] == "b"
    });
    second.signal(nix::sys::signal::Signal::SIGTERM);
    second.wait();
}

#[test]
fn run_moves_to_another_member_of_etcd() {
    let mut set = EtcdSet::start_with(3, EtcdServer::builder().fast_elections());
    let urls: Vec<String> = set
        .iter()
        .map(|server| format!("127.0.0.1:{}", server.port()))
        .collect();
    // One URL with commas in it, as it is written in LEASEHOLD_STORE.
    let sandbox = Sandbox::on(&[format!("etcd://{}", urls.join(","))]);
    let holder = sandbox.hold("--ttl 10s x", "held");
    set[0].kill();
    set.leader_but(0);
    sandbox.run("run -n x true").fails(75, &["x"]);
    sandbox.let_go();
    holder.wait().succeeds();
    sandbox.run("run x true").succeeds();
}
