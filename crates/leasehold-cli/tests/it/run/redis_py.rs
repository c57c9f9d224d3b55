//! A mixed fleet: redis-py's `Lock` and `leasehold run`, on one Redis and under one name.

use leasehold_testkit::servers::{RedisPy, RedisServer};

use crate::support::harness::Sandbox;

#[test]
fn redis_py_and_the_command_exclude_each_other() {
    let (sandbox, server) = (Sandbox::new(), RedisServer::start());
    let mut python = RedisPy::start(server.port());
    let leasehold = |script: &str| {
        let mut command = sandbox.without_store();
        command.env("LEASEHOLD_STORE", server.url());
        command.args(["run", "-n", "deploy", "--", "sh", "-c", script]);
        sandbox.spawn(command)
    };
    assert!(python.acquire("deploy"));
    let refused = leasehold("echo never > inside").wait();
    refused.fails(75, &["held by a client of another library"]);
    assert!(!sandbox.path("inside").exists());
    python.release("deploy");

    let holder = leasehold("echo $$ > inside; while [ ! -e go ]; do sleep 0.02; done");
    sandbox.pid_in("inside");
    assert!(!python.acquire("deploy"));
    std::fs::write(sandbox.path("go"), "").unwrap();
    assert_eq!(holder.wait().code(), 0);
    assert!(python.acquire("deploy"), "freed with the command");
}
