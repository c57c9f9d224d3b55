//! Requests that arrive after their owner was released.

use std::sync::Arc;

use leasehold::Mode;
use leasehold::store::{LockRequest, Progress, ReleaseReply};

use crate::support::{client, is_free, key, server, session, store, until_waiting_for_a_row};

/// The attempt of `request` as SQL.
fn attempt(request: &LockRequest) -> String {
    let (owner, ttl) = (request.owner, request.ttl.as_micros());
    format!("select leasehold.acquire('job', '{owner}', null, 0, {ttl}, 1, false, false);")
}

#[tokio::test]
async fn attempt_after_its_release_is_void() {
    let server = server().await;
    let (session, request) = session(&store(&server));
    // Before the first connection, no request can be on its way.
    let mut other = LockRequest::clone(&request);
    other.key = key("other");
    let other = Arc::new(other);
    let granted = session.acquire(&other, &Progress::new()).await;
    granted.expect("the lock");
    session.release(&other).await.expect("a release");
    let released = session.release(&request).await.expect("an answer");
    assert_eq!(released, ReleaseReply::WasLost);
    assert_eq!(server.sql(&attempt(&request)), ["busy - - - -"]);
    assert!(is_free(&client(&server), "job").await.expect("an answer"));
}

/// The answer to an attempt is lost with its connection, and the wait goes on with the same owner.
#[tokio::test]
async fn waiter_that_holds_already_is_granted_again() {
    let server = server().await;
    for (name, mode) in [("one", Mode::Exclusive), ("many", Mode::Shared)] {
        let (session, request) = session(&store(&server));
        let request = LockRequest::clone(&request).waiting(true).with_mode(mode);
        let mut request = request;
        request.key = key(name);
        let request = Arc::new(request);
        let progress = Progress::new();
        let first = session
            .acquire(&request, &progress)
            .await
            .expect("the lock");
        let again = session
            .acquire(&request, &progress)
            .await
            .expect("the same grant");
        assert_eq!(first.fence, again.fence);
        assert!(again.term.since > first.term.since);
        let released = session.release(&request).await.expect("a release");
        assert_eq!(released, ReleaseReply::Released);
        assert!(is_free(&client(&server), name).await.expect("an answer"));
    }
}

#[tokio::test]
async fn settled_release_leaves_no_mark() {
    let server = server().await;
    let (session, request) = session(&store(&server));
    let progress = Progress::new();
    session
        .acquire(&request, &progress)
        .await
        .expect("the lock");
    session.release(&request).await.expect("a release");
    assert_eq!(server.sql("select count(*) from leasehold.ended;"), ["0"]);
    assert_eq!(server.sql("select crowded from leasehold.lock;"), ["f"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn statement_of_a_dropped_attempt_takes_nothing() {
    let server = server().await;
    let client = client(&server);
    assert!(is_free(&client, "job").await.expect("an answer"));
    let mut other = server.session();
    other.run("begin; select from leasehold.lock for update;");
    let (session, request) = session(&store(&server));
    let request = Arc::new(LockRequest::clone(&request).waiting(true));
    let asking = {
        let (session, request) = (Arc::clone(&session), Arc::clone(&request));
        let asks = async move { session.acquire(&request, &Progress::new()).await };
        leasehold::store::background::spawn(asks)
    };
    tokio::task::block_in_place(|| until_waiting_for_a_row(&server));
    asking.abort();
    let releasing = session.release(&request);
    other.run("commit;");
    releasing.await.expect("a release");
    assert!(is_free(&client, "job").await.expect("an answer"));
}
