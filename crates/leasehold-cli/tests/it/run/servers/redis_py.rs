//! A mixed fleet: redis-py's `Lock` and `leasehold run`, on one Redis and under one name.

use leasehold_testkit::servers::RedisPy;

use crate::support::harness::Sandbox;

#[test]
fn redis_py_and_the_command_exclude_each_other() {
    let (sandbox, server) = Sandbox::on_redis();
    let mut python = RedisPy::start(server.port());
    assert!(python.acquire("deploy"));
    let refused = sandbox.run("run -n deploy touch inside");
    refused.fails(75, &["held by a client of another library"]);
    let status = sandbox.run("status deploy").stdout;
    assert!(status.contains("unless renewed"), "{status}");
    assert!(!sandbox.path("inside").exists());
    python.release("deploy");

    let holder = sandbox.hold("-n deploy", "inside");
    assert!(!python.acquire("deploy"));
    sandbox.finish(holder);
    assert!(python.acquire("deploy"), "freed with the command");
}
