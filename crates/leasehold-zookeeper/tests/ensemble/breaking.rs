//! An operator breaks a lease that its holder goes on renewing.

use std::time::Duration;

use leasehold::look::BreakOptions;
use leasehold::store::RenewReply;
use leasehold::store::background::spawn;
use leasehold::{LostReason, Mode};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::{Zookeeper, ZookeeperConnection};

use crate::support::{Direct, client, lock, now, pause, until, until_waiting};

/// The requests of the operator take this long, and the holder renews meanwhile.
const LATE: Duration = Duration::from_millis(300);

/// Breaks the lease of a holder that renews all the time, while another client waits.
async fn break_late(ttl: Duration) {
    let servers = Zookeeper::start();
    let network = Proxy::to(servers.ports()[0]);
    let operator = client(&servers.url_at([network.port()]));
    assert!(operator.holders("job").await.unwrap().is_empty());
    let holder = Direct::open(&(servers.url() + "?timeout=12s"));
    let held = holder.acquire("job", ttl).await;
    let waiting = client(&servers.url());
    let next = lock(&waiting, "job");
    let next = spawn(async move { (next.acquire().await, now()) });
    until_waiting(&waiting, "job", 1).await;
    network.set(NetworkFault::SlowRequests(LATE));
    let fence = held.fence;
    let breaking = spawn(async move {
        let options = BreakOptions::at_its_end();
        operator.break_lock("job", fence, options).await
    });
    let mut deadline = None;
    loop {
        let renewing = holder.session.renew(std::slice::from_ref(&held));
        match renewing.await.pop().unwrap() {
            RenewReply::Renewed(term) => deadline = term.deadline(ttl, Duration::ZERO),
            RenewReply::Lost(reason) => {
                assert_eq!(reason, LostReason::Broken);
                break;
            }
            RenewReply::Unknown(error) => panic!("{error}"),
        }
        pause(20).await;
    }
    let (next, granted) = next.await.unwrap();
    let too_early = deadline.unwrap().since(granted);
    assert!(
        too_early.is_zero(),
        "granted {too_early:?} before the deadline"
    );
    breaking.await.unwrap().unwrap();
    next.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn zookeeper_broken_lock_stays_closed_after_its_last_renewal() {
    break_late(LATE * 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zookeeper_break_may_arrive_after_a_whole_lease() {
    break_late(LATE / 2).await;
}

/// A client of another library waits behind the closed lock, and does not know that it opens by itself.
#[tokio::test]
async fn zookeeper_waiter_opens_a_closed_lock_for_others() {
    let servers = Zookeeper::start();
    let url = servers.url() + "/closed";
    let holder = Direct::open(&(url.clone() + "?timeout=12s"));
    let (operator, waiting) = (client(&url), client(&url));
    let mut server = ZookeeperConnection::open(servers.ports()[0], None);
    let reader = lock(&waiting, "reader").mode(Mode::Shared);
    for (key, waits) in [
        ("writer", lock(&waiting, "writer")),
        ("reader", reader.barging(true)),
    ] {
        let held = holder.acquire(key, Duration::from_millis(1500)).await;
        let options = BreakOptions::at_its_end();
        operator.break_lock(key, held.fence, options).await.unwrap();
        let folder = format!("/closed/{key}");
        let other = "_c_7c4b9a4e-0b5e-4f0e-9d3a-1a2b3c4d5e6f-lock-0000000001";
        server.create(&format!("{folder}/{other}"), "");
        let waits = spawn(async move { waits.acquire().await.map(drop) });
        until("the lock is open", async || {
            let mut server = ZookeeperConnection::open(servers.ports()[0], None);
            let nodes = server.children(&folder);
            nodes.iter().all(|node| !node.contains("-x"))
        })
        .await;
        waits.abort();
    }
}
