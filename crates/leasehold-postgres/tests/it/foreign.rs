//! Programs that lock with PostgreSQL's own functions.

use crate::support::{client, server, taken};

/// Advisory locks have numbers and end with a session. They and these locks do not exclude each other, so a program moves
/// from one to the other as a whole, or takes both for a while.
#[tokio::test]
async fn advisory_locks_are_others() {
    let server = server().await;
    let client = client(&server);
    let mut foreign = server.session();
    assert_eq!(
        foreign.run("select pg_try_advisory_lock(hashtext('job'));"),
        ["t"]
    );
    let guard = taken(&client, "job").await;
    let mut second = server.session();
    assert_eq!(
        second.run("select pg_try_advisory_lock(hashtext('job'));"),
        ["f"]
    );
    guard.release().await.expect("a release");
}

/// While some of the programs have moved, each takes both: first ours, then the advisory lock in its transaction.
#[tokio::test]
async fn program_that_takes_both_excludes_both() {
    let server = server().await;
    let client = client(&server);
    let guard = taken(&client, "job").await;
    let mut moved = server.session();
    let both = format!(
        "begin; select leasehold.holds('job', {}) and pg_try_advisory_xact_lock(hashtext('job'));",
        guard.fence()
    );
    assert_eq!(moved.run(&both), ["BEGIN", "t"]);
    let mut old = server.session();
    assert_eq!(
        old.run("select pg_try_advisory_lock(hashtext('job'));"),
        ["f"]
    );
    assert!(
        client
            .lock("job")
            .try_acquire()
            .await
            .expect("an answer")
            .is_none()
    );
    moved.run("commit;");
    assert_eq!(
        old.run("select pg_try_advisory_lock(hashtext('job'));"),
        ["t"]
    );
    guard.release().await.expect("a release");
}
