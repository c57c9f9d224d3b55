//! A guard ends before the leader grants the lock to the next one, even if its follower still answers.

use std::time::Duration;

use leasehold::clock::{BootInstant, SystemClock, within};
use leasehold::store::{Held, RenewReply};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::Zookeeper;

use crate::support::{Direct, LONG, client, lock, now, pause, until_waiting};

/// The last of the servers, which has links to the others.
const FOLLOWER: usize = 2;

/// The leader hears of a follower's sessions every half second, a quarter of their timeout.
fn with_links() -> Zookeeper {
    let builder = Zookeeper::builder().members(3).with_links();
    let mut servers = builder.setting("tickTime=1000").start();
    while servers.leader() == FOLLOWER {
        servers.restart(FOLLOWER);
    }
    servers
}

/// The follower goes on answering its clients, and the leader ends their sessions meanwhile. The client renews all the
/// time, and each term that it gets must end before the leader lets the next holder in.
#[tokio::test]
async fn zookeeper_terms_end_before_a_cut_off_session() {
    let servers = with_links();
    let ports = servers.ports();
    let near = servers.url_at([ports[FOLLOWER]]) + "?timeout=2s";
    let other = client(&servers.url_at([ports[0], ports[1]]));
    for round in 0..ROUNDS {
        let (holder, key) = (Direct::open(&near), format!("cut-off-{round}"));
        let held = holder.acquire(&key, LONG).await;
        let waiter = lock(&other, &key);
        let cut = async {
            until_waiting(&other, &key, 1).await;
            // Renewals, keep-alives and the pings of the leader are at another point each time.
            let renewing = holder.renew_for(&held, 600 + 137 * round).await;
            servers
                .links()
                .iter()
                .for_each(|link| link.set(NetworkFault::HalfOpen));
            renewing.max(holder.renew_for(&held, 1_000).await)
        };
        let granted = async {
            let next = waiter.acquire().await.unwrap();
            (now(), next)
        };
        let ((granted_at, next), end) = tokio::join!(granted, cut);
        assert!(end < granted_at, "{:?} too late", end.since(granted_at));
        servers
            .links()
            .iter()
            .for_each(|link| link.set(NetworkFault::None));
        servers.links().iter().for_each(Proxy::cut);
        next.release().await.unwrap();
        leasehold_testkit::servers::until("the follower is back", || {
            servers.mode(FOLLOWER).as_deref() == Some("follower")
        });
    }
}

/// A wrong rule fails about one of four rounds.
const ROUNDS: u64 = 6;

impl Direct {
    /// Renews for some milliseconds. Returns the end of the last term.
    async fn renew_for(&self, held: &Held, millis: u64) -> BootInstant {
        let (end, mut last) = (
            now() + Duration::from_millis(millis),
            BootInstant::from_nanos(0),
        );
        while now() < end {
            let renewing = self.session.renew(std::slice::from_ref(held));
            let replies = within(&SystemClock, end, renewing)
                .await
                .unwrap_or_default();
            if let Some(RenewReply::Renewed(term)) = replies.first() {
                last = last.max(term.since + term.ttl.unwrap());
            }
            pause(5).await;
        }
        last
    }
}

/// A leader that was stopped ends the sessions that it did not hear of meanwhile.
#[tokio::test]
async fn zookeeper_guard_ends_before_a_frozen_leader_goes_on() {
    let servers = Zookeeper::builder().members(3).start();
    let leader = servers.leader();
    let ports = servers.ports();
    let follower = (0..3).find(|number| *number != leader).unwrap();
    let (near, far) = (
        servers.url_at([ports[follower]]),
        servers.url_at([ports[follower]]),
    );
    let (holder, other) = (client(&(near + "?timeout=1s")), client(&far));
    let guard = lock(&holder, "frozen").acquire().await.unwrap();
    let waiter = lock(&other, "frozen");
    let freeze = async {
        until_waiting(&other, "frozen", 1).await;
        servers.freeze(leader);
        // Longer than the session, and shorter than the followers wait.
        pause(1_500).await;
        let was_valid = guard.is_valid();
        servers.thaw(leader);
        assert!(!was_valid, "no answer for longer than the timeout");
        // If the leader let the session live, the lock is still held.
        drop(guard.release().await);
    };
    let (next, ()) = tokio::join!(waiter.acquire(), freeze);
    assert!(next.unwrap().is_valid());
}

#[tokio::test]
async fn zookeeper_term_is_shorter_than_the_session() {
    let servers = Zookeeper::start();
    let holder = client(&(servers.url() + "?timeout=8s"));
    let guard = lock(&holder, "term").acquire().await.unwrap();
    pause(2_500).await;
    let left = guard.deadline().unwrap().since(now());
    // Half of the timeout, less what the core leaves unused, and at most one renewal interval ago.
    assert!(left > Duration::from_millis(1_500), "{left:?}");
    assert!(left < Duration::from_secs(4), "{left:?}");
    guard.release().await.unwrap();
}
