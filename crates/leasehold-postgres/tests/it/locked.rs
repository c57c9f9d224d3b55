//! Transactions of others that keep a table or a row for long.

use leasehold::ErrorKind;
use leasehold::store::{Held, Progress, RenewReply};
use std::sync::Arc;

use crate::support::{client, is_free, server, session, store, taken};

/// As during `ALTER TABLE` and `VACUUM FULL`.
#[tokio::test]
async fn lock_of_a_locked_table_is_not_busy() {
    let server = server().await;
    let client = client(&server);
    assert!(is_free(&client, "job").await.expect("an answer"));
    let mut other = server.session();
    other.run("begin; lock table leasehold.lock in access exclusive mode;");
    let (holders, attempt) = (client.holders("job").await, is_free(&client, "job").await);
    for error in [
        attempt.expect_err("no answer"),
        holders.expect_err("no answer"),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
        assert!(error.is_not_ready() && error.is_retryable(), "{error}");
        assert!(error.to_string().contains("ALTER TABLE"), "{error}");
    }
    other.run("commit;");
    assert!(is_free(&client, "job").await.expect("an answer"));
}

#[tokio::test]
async fn renewal_names_a_locked_table() {
    let server = server().await;
    let (session, request) = session(&store(&server));
    let grant = session.acquire(&request, &Progress::new()).await;
    let fence = grant.expect("the lock").fence;
    let mut other = server.session();
    other.run("begin; lock table leasehold.lock in access exclusive mode;");
    let held = Held {
        request: Arc::clone(&request),
        fence,
    };
    let RenewReply::Unknown(error) = session.renew(&[held]).await.remove(0) else {
        panic!("renewed")
    };
    assert!(error.to_string().contains("ALTER TABLE"), "{error}");
    other.run("commit;");
    session.release(&request).await.expect("a release");
}

/// A row that is locked says nothing of a holder.
#[tokio::test]
async fn locked_row_is_busy_only_if_it_has_a_holder() {
    let server = server().await;
    let (one, two) = (client(&server), client(&server));
    let guard = taken(&one, "job").await;
    let mut other = server.session();
    other.run("begin; select from leasehold.lock for update;");
    assert!(!is_free(&two, "job").await.expect("an answer"));
    other.run("rollback;");
    guard.release().await.expect("a release");
    other.run("begin; select from leasehold.lock for update;");
    let error = is_free(&two, "job").await.expect_err("no answer");
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
}
