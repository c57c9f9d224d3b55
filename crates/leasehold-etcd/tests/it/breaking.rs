//! An operator breaks a lease that its holder goes on renewing.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::env::Env;
use leasehold::look::{BreakOptions, Owner};
use leasehold::store::background::spawn;
use leasehold::store::{Held, LockRequest, Progress, RenewReply, SessionContext, Store as _};
use leasehold::{ErrorKind, Key, LostReason};
use leasehold_etcd::EtcdStore;
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::{EtcdServer, until};
use tokio::runtime::Handle;

use crate::{client, lock, url};

/// The shortest TTL of the server.
const TTL: Duration = Duration::from_secs(2);

/// Each request of the operator arrives late, and the holder renews meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn broken_lock_stays_closed_after_its_last_renewal() {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let operator = client(&format!("etcd://127.0.0.1:{}", network.port()));
    assert!(operator.holders("job").await.unwrap().is_empty());
    let env = Env::default();
    let info = Arc::new(env.this_process(None));
    let context = SessionContext::new(env.clone(), Arc::clone(&info), Handle::current());
    let session = EtcdStore::new(&url(&server)).unwrap().open(context);
    let wall = env.clock.wall();
    let owner = Owner::at(info.id, wall, &*env.entropy);
    let key = Key::new("job").unwrap();
    let request = Arc::new(LockRequest::new(key, owner, TTL, wall, info));
    let grant = session.acquire(&request, &Progress::new()).await.unwrap();
    let held = [Held {
        request: Arc::clone(&request),
        fence: grant.fence,
    }];
    network.set(NetworkFault::SlowRequests(Duration::from_millis(800)));
    let breaking = spawn(async move {
        let options = BreakOptions::at_its_end();
        operator.break_lock("job", grant.fence, options).await
    });
    let mut deadline = grant.term.deadline(TTL, Duration::ZERO);
    while !breaking.is_finished() {
        match session.renew(&held).await.pop().unwrap() {
            RenewReply::Renewed(term) => deadline = term.deadline(TTL, Duration::ZERO),
            RenewReply::Lost(reason) => {
                assert_eq!(reason, LostReason::Broken);
                break;
            }
            RenewReply::Unknown(error) => panic!("{error}"),
        }
        env.poll_pause().await;
    }
    breaking.await.unwrap().unwrap();
    let next = lock(&client(&url(&server)), "job").acquire().await.unwrap();
    let now = SystemClock.now();
    let too_early = deadline.unwrap().since(now);
    assert!(
        too_early.is_zero(),
        "free {too_early:?} before the deadline"
    );
    assert!(next.fence() > grant.fence);
    next.release().await.unwrap();
}

/// The downgrade has read the entry, and its write arrives after that of the break.
#[tokio::test(flavor = "multi_thread")]
async fn break_during_a_downgrade_ends_the_lease() {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let holder = client(&format!("etcd://127.0.0.1:{}", network.port()));
    let guard = lock(&holder, "job").acquire().await.unwrap();
    let fence = guard.fence();
    let reads = server.calls("Txn");
    network.set(NetworkFault::SlowRequests(Duration::from_millis(350)));
    let downgrading = spawn(async move { guard.downgrade().await.unwrap_err() });
    until("the entry is read", || server.calls("Txn") > reads);
    network.hold_requests();
    let (operator, how) = (client(&url(&server)), BreakOptions::at_its_end());
    operator.break_lock("job", fence, how).await.unwrap();
    network.deliver_requests();
    let error = downgrading.await.unwrap();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
}
