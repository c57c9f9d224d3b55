//! What only etcd has: its members, its keys, and its rights.

use leasehold_testkit::servers::{EtcdServer, EtcdSet};
use serde_json::json;

use crate::administration::doctor::{doctor, found, is_documented, verdict};
use crate::support::harness::Sandbox;
use crate::support::program::assert_fields;

/// A sandbox with three etcd servers, in one URL with commas in it.
fn on_three_members() -> (Sandbox, EtcdSet) {
    let set = EtcdSet::start_with(3, EtcdServer::builder().fast_elections());
    let addresses = set.iter().map(|it| format!("127.0.0.1:{}", it.port()));
    let url = format!("etcd://{}", addresses.collect::<Vec<_>>().join(","));
    (Sandbox::on(&[url]), set)
}

#[test]
fn keys_of_others_on_etcd_are_no_locks() {
    let (sandbox, server) = Sandbox::on_etcd();
    let holder = sandbox.hold("x", "holder");
    let put = server.etcdctl(&["put", "x/config", "no lock"]);
    assert!(put.status.success(), "{put:?}");
    let status = sandbox.run("status --json x").json();
    assert_eq!(status["holders"][0]["fence"], sandbox.fence("holder"));
    sandbox.finish(holder);
}

#[test]
fn run_moves_to_another_member_of_etcd() {
    let (sandbox, mut set) = on_three_members();
    let holder = sandbox.hold("--ttl 10s x", "held");
    set[0].kill();
    set.leader_but(0);
    sandbox.run("run -n x true").fails(75, &["x"]);
    sandbox.finish(holder);
    sandbox.run("run x true").succeeds();
}

#[test]
fn doctor_changes_no_key_on_etcd() {
    let (sandbox, server) = Sandbox::on_etcd();
    sandbox.run("run x true").succeeds();
    let keys = || server.etcdctl(&["get", "--prefix", ""]).stdout;
    let before = keys();
    let (code, report) = doctor(&sandbox);
    assert_eq!((code, keys()), (0, before));
    assert_fields(&report, json!({"voting": 1, "needed": 1}));
    for check in ["quorum", "encryption", "rights", "lease"] {
        assert_eq!(verdict(&report, check), "green", "{check}");
    }
    assert_eq!(verdict(&report, "members"), "yellow");
    assert!(found(&report, "lease").contains("2s"), "{report}");
    let one = &report["members"][0];
    for check in ["reachable", "version", "role", "database"] {
        assert_eq!(verdict(one, check), "green", "{check}");
    }
    assert_eq!(one["facts"]["is_leader"], true);
    is_documented(&sandbox, &report);
}

#[test]
fn doctor_names_the_command_for_rights_on_etcd() {
    let server = EtcdServer::start();
    server.demand_login("ann", "secret", "ours/");
    let on = |prefix: &str| {
        let port = server.port();
        Sandbox::on(&[format!(
            "etcd://ann:secret@127.0.0.1:{port}?prefix={prefix}"
        )])
    };
    let (code, report) = doctor(&on("theirs/"));
    assert_eq!((code, &*verdict(&report, "rights")), (78, "red"));
    let advice = found(&report, "rights");
    let command = "etcdctl role grant-permission ROLE readwrite --prefix=true 'theirs/'";
    assert!(advice.contains(command), "{advice}");
    assert_eq!(verdict(&report, "encryption"), "green", "on one machine");
    on("theirs/")
        .run("run x true")
        .fails(77, &["permission denied"]);
    let (code, report) = doctor(&on("ours/"));
    assert_eq!((code, &*verdict(&report, "rights")), (0, "green"));
    on("ours/").run("run x true").succeeds();
}

#[test]
fn doctor_sees_members_of_etcd_that_are_away() {
    let (sandbox, mut set) = on_three_members();
    let (code, report) = doctor(&sandbox);
    assert_eq!((code, &*verdict(&report, "members")), (0, "green"));
    set[2].kill();
    set.leader_but(2);
    let (code, report) = doctor(&sandbox);
    assert_eq!(
        verdict(&report["members"][2], "reachable"),
        "red",
        "{report}"
    );
    assert_eq!((code, &*verdict(&report, "quorum")), (78, "yellow"));
    set[1].kill();
    let (code, report) = doctor(&sandbox);
    assert_eq!((code, &*verdict(&report, "quorum")), (69, "red"));
    let only = Sandbox::on(&[format!("etcd://127.0.0.1:{}", set[0].port())]);
    only.run("run -w 1s x true").fails(69, &["etcd"]);
}

#[test]
fn members_refuses_etcd() {
    let sandbox = Sandbox::on(&["etcd://127.0.0.1:1".into()]);
    sandbox.run("members").fails(64, &["etcdctl member"]);
    sandbox
        .run("run --store etcd:// x true")
        .fails(64, &["no host"]);
    let secret = "run --store etcd://u:hunter2@h:x x true";
    let ended = sandbox.run(secret);
    ended.fails(64, &["--store: store URL", "1 to 65535"]);
    assert!(!ended.stderr.contains("hunter2"), "{ended:?}");
}
