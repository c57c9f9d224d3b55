//! Defaults from the environment.

use crate::support::harness::Sandbox;
use crate::support::program::sh;

#[test]
fn environment_sets_the_wait_and_the_ttl() {
    let sandbox = Sandbox::new();
    let holder = sandbox.hold("x", "pid");
    let wait = ("LEASEHOLD_WAIT", "300ms");
    let gave_up = "gave up after 300ms";
    sandbox
        .start_with(wait, "run x true")
        .wait()
        .fails(75, &[gave_up]);
    sandbox
        .start_with(wait, "wait x")
        .wait()
        .fails(75, &[gave_up]);
    let option = sandbox.start_with(wait, "run -w 400ms x true").wait();
    option.fails(75, &["gave up after 400ms"]);
    let no_wait = sandbox.start_with(wait, "run -n x true").wait();
    assert_eq!(no_wait.code(), 75);
    assert!(!no_wait.stderr.contains("gave up"), "{no_wait:?}");
    sandbox.finish(holder);
    let ttl = ("LEASEHOLD_TTL", "1ms");
    for args in ["run x true", "once x true", "elect x true"] {
        sandbox.start_with(ttl, args).wait().fails(64, &["1ms"]);
    }
    let option = sandbox.start_with(ttl, "run --ttl 5s x true").wait();
    option.succeeds();
    let wrong = sandbox
        .start_with(("LEASEHOLD_TTL", "5"), "run x true")
        .wait();
    wrong.fails(64, &["LEASEHOLD_TTL is \"5\": a duration needs a unit"]);
    sandbox
        .start_with(("LEASEHOLD_WAIT", ""), "run x true")
        .wait()
        .succeeds();
}

#[test]
fn redis_lease_is_shown_before_it_is_broken() {
    let (sandbox, _server) = Sandbox::on_redis();
    let free = sandbox.run("break --dry-run x");
    free.fails(76, &["is free; nothing is broken"]);
    let holder = sandbox.start(&sh("run --ttl 3s x", "echo > started; sleep 1000"));
    sandbox.line_in("started");
    let shown = sandbox.run("break --dry-run x").succeeds().stdout;
    assert!(
        shown.starts_with("x: would break the lease of leasehold (pid "),
        "{shown}"
    );
    let other = sandbox.run("break --dry-run --fence 7 x");
    other.fails(76, &["not with fence 7"]);
    assert!(!sandbox.is_free("x"));
    sandbox.run("break x").fails(64, &["or --yes"]);
    sandbox.run("break --yes x").succeeds();
    holder.wait().fails(76, &["an operator broke the lock"]);
}
