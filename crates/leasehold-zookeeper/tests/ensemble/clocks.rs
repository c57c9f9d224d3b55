//! Servers and clients whose clocks are wrong.

use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::look::BreakOptions;
use leasehold::store::background::spawn;
use leasehold::store::{AcquireError, RenewReply};
use leasehold::{Client, ErrorKind, LostReason};
use leasehold_testkit::servers::{Zookeeper, ZookeeperConnection};

use crate::support::{Direct, client, hold_once, lock, now, pause, until_waiting};

const HOUR: Duration = Duration::from_secs(60 * 60);

fn with_clock() -> Zookeeper {
    Zookeeper::builder().with_clocks().start()
}

/// Runs the request `q`, unless it has a result.
async fn once(client: &Client, result: &str) -> String {
    let once = client.once("q").retention(HOUR / 6);
    let done = once.run(async |_| Ok::<_, String>(result.to_owned()));
    let done = done.await.unwrap().unwrap();
    String::from_utf8(done.bytes.to_vec()).unwrap()
}

/// One client saw the leader's clock while it was ahead, and reads the record after the clock was set right.
#[tokio::test]
async fn zookeeper_once_keeps_its_result_after_clock_steps() {
    let servers = with_clock();
    let (early, late) = (client(&servers.url()), client(&servers.url()));
    servers.clock(0).forward(HOUR);
    hold_once(&early, "other").await;
    servers.clock(0).set_right();
    assert_eq!(once(&late, "from late").await, "from late");
    assert_eq!(once(&early, "from early").await, "from late");
    assert_eq!(once(&late, "again").await, "from late");
}

/// The waiter saw the leader's clock while it was ahead. The holder goes on renewing until it hears of the break.
#[tokio::test(flavor = "multi_thread")]
async fn zookeeper_broken_lock_stays_closed_after_clock_steps() {
    const TTL: Duration = Duration::from_secs(2);
    let servers = with_clock();
    let holder = Direct::open(&(servers.url() + "?timeout=8s"));
    let held = holder.acquire("job", TTL).await;
    let waiting = client(&servers.url());
    servers.clock(0).forward(HOUR);
    let next = lock(&waiting, "job");
    let next = spawn(async move { (next.acquire().await, now()) });
    until_waiting(&waiting, "job", 1).await;
    servers.clock(0).set_right();
    let operator = client(&servers.url());
    let renewing = holder.session.renew(std::slice::from_ref(&held));
    let RenewReply::Renewed(term) = renewing.await.pop().unwrap() else {
        panic!("it holds the lock");
    };
    let options = BreakOptions::at_its_end();
    operator
        .break_lock("job", held.fence, options)
        .await
        .unwrap();
    let (next, granted) = next.await.unwrap();
    let too_early = term.deadline(TTL, Duration::ZERO).unwrap().since(granted);
    assert!(too_early.is_zero(), "granted {too_early:?} too early");
    let renewing = holder.session.renew(std::slice::from_ref(&held));
    let told = renewing.await.pop().unwrap();
    assert!(
        matches!(told, RenewReply::Lost(LostReason::Broken)),
        "{told:?}"
    );
    next.unwrap().release().await.unwrap();
}

/// A clock that was behind is set right. The lock opens soon, and not an hour later.
#[tokio::test(flavor = "multi_thread")]
async fn zookeeper_broken_lock_opens_after_a_step_forward() {
    let servers = with_clock();
    servers.clock(0).back(HOUR);
    let holder = Direct::open(&(servers.url() + "?timeout=8s"));
    let held = holder.acquire("job", Duration::from_secs(1)).await;
    let waiting = client(&servers.url());
    let next = lock(&waiting, "job");
    let next = spawn(async move { next.acquire().await });
    until_waiting(&waiting, "job", 1).await;
    let operator = client(&servers.url());
    let options = BreakOptions::at_its_end();
    operator
        .break_lock("job", held.fence, options)
        .await
        .unwrap();
    pause(100).await;
    servers.clock(0).set_right();
    next.await.unwrap().unwrap().release().await.unwrap();
}

/// A client takes milliseconds for seconds. Its fences would be those of all locks of the counter for good.
#[tokio::test]
async fn zookeeper_proposal_far_ahead_is_refused() {
    let servers = Zookeeper::start();
    let url = servers.url() + "/wrong";
    let right = client(&url);
    let before = lock(&right, "x").acquire().await.unwrap();
    let fence = before.fence();
    before.release().await.unwrap();
    let wrong = Direct::open(&url);
    let mut request = wrong.request("x", Duration::from_secs(30));
    request.proposal = WallTime::from_micros(request.proposal.as_micros() * 1000);
    let refused = wrong.ask(request).await;
    let Err(AcquireError::Failed(error)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let text = error.to_string();
    assert!(text.contains("after the year 2112"), "{text}");
    let mut server = ZookeeperConnection::open(servers.ports()[0], None);
    assert!(
        server.children("/wrong/x").is_empty(),
        "it leaves the queue"
    );
    let counter = server.children("/wrong/leasehold:fences").remove(0);
    let counter = server.data(&format!("/wrong/leasehold:fences/{counter}"));
    assert_eq!(counter, Some(fence.to_string()));
}
