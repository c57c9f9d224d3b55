//! What a waiter watches.

use leasehold::store::background::spawn;
use leasehold_testkit::servers::{EtcdServer, until};

use crate::{client, lock, url};

/// Returns how many watches the server has.
fn watches(server: &EtcdServer) -> Option<u32> {
    let metrics = server.metrics();
    let mut lines = metrics.lines();
    let count = lines.find_map(|line| line.strip_prefix("etcd_debugging_mvcc_watcher_total "));
    count?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_watches_twice_and_leaves_no_watch() {
    let server = EtcdServer::start();
    let (ours, theirs) = (client(&url(&server)), client(&url(&server)));
    let guard = lock(&ours, "job").acquire().await.unwrap();
    let waiting = spawn(async move { lock(&theirs, "job").acquire().await });
    until("both watches have begun", || watches(&server) == Some(2));
    guard.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    until("no watch is left", || watches(&server) == Some(0));
    next.release().await.unwrap();
}
