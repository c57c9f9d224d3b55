//! What only ZooKeeper has: `doctor`, and what its sessions do not allow.

use leasehold_testkit::servers::Zookeeper;

use crate::administration::doctor::{found, is_documented, report};
use crate::support::harness::Sandbox;

#[test]
fn zookeeper_has_no_handles_and_no_lock_delay() {
    let (sandbox, servers) = Sandbox::on_zookeeper(1);
    let needs = ["needs a store with leases"];
    sandbox.run("acquire x").fails(64, &needs);
    sandbox
        .run("run --lock-delay 1s x true")
        .fails(64, &["lock_delay"]);
    sandbox
        .run("members")
        .fails(64, &["ZooKeeper manages its members itself"]);
    let two = [servers.url(), servers.url()];
    sandbox.run_at(&two, "run x true").fails(64, &["zk://"]);
    let wrong = ["zk://u:secret@a?x=1".to_owned()];
    let refused = sandbox.run_at(&wrong, "run x true");
    assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
    refused.fails(64, &["unknown parameter"]);
}

#[test]
fn zookeeper_doctor_finds_nothing_wrong_and_each_fault() {
    let mut servers = Zookeeper::builder().members(3).start();
    let sandbox = Sandbox::on(&[servers.url() + "/locks?timeout=5s"]);
    let healthy = sandbox.run("doctor --json");
    let shown = report(&healthy);
    assert_eq!(healthy.code(), 0, "{shown}");
    assert_eq!(shown["voting"], 3, "{shown}");
    let of_members = shown["members"].as_array().unwrap();
    assert!(
        of_members
            .iter()
            .any(|member| member["facts"]["mode"] == "leader"),
        "{shown}"
    );
    is_documented(&sandbox, &shown);
    let frozen = (0..3).find(|number| *number != servers.leader()).unwrap();
    servers.kill(frozen);
    let less = report(&sandbox.run("doctor --json"));
    assert!(found(&less, "quorum").contains("2 of 3"), "{less}");
    is_documented(&sandbox, &less);
    let other = (0..3).find(|number| *number != frozen).unwrap();
    servers.kill(other);
    let down = sandbox.run("doctor --json");
    assert_ne!(down.code(), 0, "{}", down.stdout);
    assert!(found(&report(&down), "quorum").contains("without a majority"));
}
