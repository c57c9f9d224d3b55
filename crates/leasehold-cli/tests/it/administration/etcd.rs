//! Looking at locks on etcd, breaking them, and `doctor`.

use leasehold_testkit::servers::{EtcdServer, EtcdSet};
use serde_json::{Value, json};

use crate::administration::doctor::{is_documented, report, verdict};
use crate::administration::redis_doctor::found;
use crate::run::servers::etcd::on_etcd;
use crate::support::harness::Sandbox;
use crate::support::program::{Running, assert_fields, sh};

fn hold(sandbox: &Sandbox) -> (Running, u64) {
    let script = "echo $LEASEHOLD_FENCE > fence; while :; do sleep 0.02; done";
    let holder = sandbox.start(&sh("run --ttl 4s x", script));
    let fence = sandbox.line_in("fence").parse().unwrap();
    (holder, fence)
}

fn doctor(sandbox: &Sandbox) -> (i32, Value) {
    let ended = sandbox.run("doctor --json");
    (ended.code(), report(&ended))
}

#[test]
fn locks_on_etcd_are_shown_and_broken() {
    let (sandbox, server) = on_etcd();
    let (holder, fence) = hold(&sandbox);
    let listed = sandbox.run("ls --json").json();
    assert_eq!(listed["locks"][0]["lock"], "x", "{listed}");
    assert_eq!(sandbox.run("ls --json y*").json()["locks"], json!([]));
    let put = server.etcdctl(&["put", "x/config", "no lock"]);
    assert!(put.status.success(), "{put:?}");
    let status = sandbox.run("status --json x").json();
    assert_eq!(status["holders"][0]["fence"], fence);
    sandbox
        .run("break x --fence 7")
        .fails(76, &["not with fence 7"]);
    let args = format!("break x --fence {fence} --now --reason outage");
    sandbox.run(&args).succeeds();
    let told = ["an operator broke the lock", "outage"];
    holder.wait().fails(76, &told);
    sandbox.run("run -n x true").succeeds();
    let text = sandbox.run("status x").stdout;
    assert!(
        text.starts_with("x: free\n") && text.contains(": outage\n"),
        "{text}"
    );
}

#[test]
fn doctor_changes_no_key_on_etcd() {
    let (sandbox, server) = on_etcd();
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
    assert_eq!(
        (code, verdict(&report, "rights").as_str()),
        (78, "red"),
        "{report}"
    );
    let advice = found(&report, "rights");
    let command = "etcdctl role grant-permission ROLE readwrite --prefix=true 'theirs/'";
    assert!(advice.contains(command), "{advice}");
    assert_eq!(verdict(&report, "encryption"), "green", "on one machine");
    on("theirs/")
        .run("run x true")
        .fails(77, &["permission denied"]);
    let (code, report) = doctor(&on("ours/"));
    assert_eq!(
        (code, verdict(&report, "rights").as_str()),
        (0, "green"),
        "{report}"
    );
    on("ours/").run("run x true").succeeds();
}

#[test]
fn doctor_sees_members_of_etcd_that_are_away() {
    let mut set = EtcdSet::start_with(3, EtcdServer::builder().fast_elections());
    let addresses: Vec<String> = set
        .iter()
        .map(|server| format!("127.0.0.1:{}", server.port()))
        .collect();
    let sandbox = Sandbox::on(&[format!("etcd://{}", addresses.join(","))]);
    let (code, report) = doctor(&sandbox);
    assert_eq!(
        (code, verdict(&report, "members").as_str()),
        (0, "green"),
        "{report}"
    );
    set[2].kill();
    set.leader_but(2);
    let (code, report) = doctor(&sandbox);
    assert_eq!(
        verdict(&report["members"][2], "reachable"),
        "red",
        "{report}"
    );
    assert_eq!(
        (code, verdict(&report, "quorum").as_str()),
        (78, "yellow"),
        "{report}"
    );
    set[1].kill();
    let (code, report) = doctor(&sandbox);
    assert_eq!(
        (code, verdict(&report, "quorum").as_str()),
        (69, "red"),
        "{report}"
    );
    let only = Sandbox::on(&[format!("etcd://{}", addresses[0])]);
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
