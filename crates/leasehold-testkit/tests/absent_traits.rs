//! What a client answers if the store lacks an optional trait.

use std::sync::Arc;

use leasehold::look::{BreakOptions, Pattern};
use leasehold::store::Store;
use leasehold::{Client, Error, ErrorKind};

#[path = "minimal_store/store.rs"]
mod store;

fn client() -> Client {
    let store: Arc<dyn Store> = Arc::new(store::MinimalStore::default());
    Client::new(store)
}

#[track_caller]
fn unsupported<T: std::fmt::Debug>(answer: Result<T, Error>, message: &str) {
    let error = answer.expect_err("an absent trait");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().ends_with(message), "{error}");
}

#[test]
fn inspection_is_unsupported_and_names_the_store() {
    let client = client();
    let message = "minimal store: cannot list its locks";
    pollster::block_on(async {
        unsupported(client.holders("deploy").await, message);
        unsupported(client.waiters("deploy").await, message);
        unsupported(client.list_locks(&Pattern::all(), 9).await, message);
    });
}

#[test]
fn record_is_unsupported_and_names_the_store() {
    let client = client();
    let message = "minimal store: keeps no records";
    pollster::block_on(async {
        unsupported(client.record("deploy").read().await, message);
        let guard = client.lock("deploy").acquire().await.expect("the lock");
        unsupported(guard.record().open().await, message);
        guard.release().await.expect("a release");
    });
}

#[test]
fn candidate_without_records_does_not_wait() {
    let client = client();
    pollster::block_on(async {
        let _guard = client.lock("deploy").acquire().await.expect("the lock");
        let campaign = client.election("deploy").campaign().await;
        unsupported(campaign, "minimal store: keeps no records");
    });
}

#[test]
fn breaking_is_unsupported_and_leaves_the_lock_held() {
    let client = client();
    let message = "minimal store: cannot take a lock from its holder";
    pollster::block_on(async {
        let guard = client.lock("deploy").acquire().await.expect("the lock");
        let broken = client.break_lock("deploy", guard.fence(), BreakOptions::at_once());
        unsupported(broken.await, message);
        unsupported(client.breakable("deploy").await, message);
        assert!(guard.is_valid());
        guard.release().await.expect("a release");
    });
}

#[test]
fn store_without_members_or_breaks_has_none() {
    let client = client();
    pollster::block_on(async {
        assert!(client.health().await.expect("an answer").is_empty());
        assert_eq!(client.last_break("deploy").await.expect("an answer"), None);
    });
}
