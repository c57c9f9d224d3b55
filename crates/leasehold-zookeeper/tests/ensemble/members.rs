//! One of several servers that does not answer, and servers that answer late.

use std::time::Duration;

use leasehold::store::RenewReply;
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::Zookeeper;

use crate::support::{Direct, client, hold_once, lock, now};

/// Three servers behind proxies, and the address of the proxies.
fn behind_proxies() -> (Zookeeper, Vec<Proxy>, String) {
    let servers = Zookeeper::builder().members(3).start();
    let proxies: Vec<Proxy> = servers.ports().into_iter().map(Proxy::to).collect();
    let url = servers.url_at(proxies.iter().map(Proxy::port));
    (servers, proxies, url)
}

/// Each client begins with a random server, and has one attempt.
#[tokio::test]
async fn zookeeper_silent_member_costs_no_attempt() {
    let (_servers, proxies, url) = behind_proxies();
    hold_once(&client(&url), "first").await;
    proxies[0].set(NetworkFault::HalfOpen);
    let mut failures = Vec::new();
    for _ in 0..12 {
        match client(&url).lock("x").try_acquire().await {
            Ok(guard) => drop(guard.unwrap().release().await.unwrap()),
            Err(error) => failures.push(error),
        }
    }
    // A machine that is busy for long may cost an attempt. The silent member would cost a third of them.
    assert!(failures.len() < 2, "{failures:?}");
}

/// The member of the holder's connection falls silent for old connections and new ones.
#[tokio::test]
async fn zookeeper_lock_survives_a_silent_member() {
    let (_servers, proxies, url) = behind_proxies();
    for round in 0..3 {
        let holder = client(&(url.clone() + "?timeout=8s"));
        let guard = lock(&holder, &format!("x{round}")).acquire().await.unwrap();
        let connected = |proxy: &&Proxy| proxy.connections() > 0;
        let silent = proxies.iter().find(connected).unwrap();
        silent.set(NetworkFault::HalfOpen);
        for _ in 0..3 {
            guard.deadline_moved(guard.deadline()).await;
            assert!(guard.is_valid(), "lost to one silent member of three");
        }
        guard.release().await.unwrap();
        holder.close(Duration::from_secs(30)).await.unwrap();
        silent.set(NetworkFault::None);
        silent.cut();
    }
}

/// A slow server is not a silent one.
#[tokio::test]
async fn zookeeper_late_answers_cost_no_lock() {
    let late = Duration::from_millis(2_500);
    let servers = Zookeeper::builder()
        .setting("maxSessionTimeout=40000")
        .start();
    let proxy = Proxy::to(servers.ports()[0]);
    let holder = Direct::open(&(servers.url_at([proxy.port()]) + "?timeout=30s"));
    let held = holder.acquire("x", Duration::from_secs(30)).await;
    let before = proxy.opened();
    proxy.set(NetworkFault::SlowAnswers(late));
    let asked = now();
    let renewed = holder.session.renew(std::slice::from_ref(&held));
    let renewed = renewed.await.pop().unwrap();
    let RenewReply::Renewed(term) = renewed else {
        panic!("{renewed:?}");
    };
    assert!(term.since >= asked && now().since(asked) >= late);
    assert_eq!(proxy.opened(), before, "on the same connection");
}
