use leasehold::store::Permits;
use leasehold::store::background::spawn;
use leasehold::{Client, Lock, Mode};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::{EtcdServer, until};

use crate::foreign::entries;
use crate::{LONG, client, url};

/// A semaphore with two permits.
fn permit(client: &Client) -> Lock {
    let permits = Permits::new(2).unwrap();
    crate::lock(client, "job").mode(Mode::Permit(permits))
}

/// Two permits become free. The first waiter is slow to take its own, so the second one and a client that barges get them.
#[tokio::test(flavor = "multi_thread")]
async fn slow_waiter_takes_no_third_permit() {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let near = client(&url(&server));
    let far = client(&format!("etcd://127.0.0.1:{}", network.port()));
    let first = permit(&near).acquire().await.unwrap();
    let second = permit(&near).acquire().await.unwrap();

    let slow = permit(&far).wait(LONG);
    let slow = spawn(async move { slow.acquire().await });
    until("the slow client waits", || entries(&server, "job") == 3);
    network.set(NetworkFault::Frozen);
    let next = permit(&near).wait(LONG);
    let next = spawn(async move { next.acquire().await });
    until("the next client waits", || entries(&server, "job") == 4);
    first.release().await.unwrap();
    second.release().await.unwrap();
    let next = next.await.unwrap().unwrap();
    let barged = permit(&near).barging(true).try_acquire().await.unwrap();
    let barged = barged.expect("one permit is held");
    network.set(NetworkFault::None);

    // The slow client needs an event, a look, and a transaction to take one. These come after them on the same connection.
    for _ in 0..20 {
        let holders = far.holders("job").await.unwrap();
        assert!(holders.len() <= 2, "{holders:?}");
    }
    next.release().await.unwrap();
    let slow = slow.await.unwrap().unwrap();
    slow.release().await.unwrap();
    barged.release().await.unwrap();
}
