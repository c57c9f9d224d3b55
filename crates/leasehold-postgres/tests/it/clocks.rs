//! A client and a server whose clocks differ.

use std::sync::Arc;

use leasehold::env::Env;
use leasehold::{Client, ErrorKind};
use leasehold_testkit::ShiftedClock;

use crate::support::{server, store, taken};

#[tokio::test]
async fn clocks_a_day_apart_are_refused() {
    const DAY: i64 = 24 * 60 * 60 * 1_000_000;
    let server = server().await;
    let client = |ahead| {
        let env = Env {
            clock: Arc::new(ShiftedClock::ahead(ahead)),
            ..Env::default()
        };
        Client::builder(store(&server)).env(env).build()
    };
    for ahead in [DAY + DAY / 8, -DAY - DAY / 8, i64::MIN] {
        let refused = client(ahead).lock("job").try_acquire().await;
        let error = refused.expect_err("a clock that is wrong");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{ahead}: {error}");
        let text = error.to_string();
        assert!(text.contains("days apart: at most 1"), "{text}");
    }
    assert_eq!(server.sql("select count(*) from leasehold.lock;"), ["0"]);
    for ahead in [DAY - DAY / 8, DAY / 8 - DAY] {
        let guard = taken(&client(ahead), "job").await;
        guard.release().await.expect("a release");
    }
}
