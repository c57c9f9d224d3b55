//! Users that lack a right, and servers that lack a script.

use leasehold::store::{DataGeneration, MemberId};
use leasehold::{ErrorKind, Fence, Mode};
use leasehold_quorum::{Lease, Place, Request};
use leasehold_testkit::servers::RedisServer;

use crate::fixture::{TestClient, permits};

const LIFE: &str = "0123456789abcdef";

#[test]
fn user_that_may_not_publish_learns_so() {
    let server = RedisServer::start();
    let mut client = TestClient::connect(&server);
    let held = client.hold(Mode::Exclusive);
    let waiter = client.wait(Mode::Exclusive, 10);
    client.command(&["ACL", "SETUSER", "default", "-publish"]);
    assert!(client.heartbeat(&[&waiter])[0].busy.cannot_notify);
    // The waiter counts as alive: it asks from time to time.
    client.release(&held);
    assert_eq!(client.value().as_deref(), Some("leasehold:next"));
    let younger = client.claim(Mode::Exclusive);
    let refused = client.acquire(&younger, Place::Ticket(20)).refused();
    assert!(refused.busy.cannot_notify);
    client.acquire(&waiter, Place::Ticket(10)).granted();
}

#[test]
fn documented_rights_are_enough() {
    let page = include_str!("../../../../docs/wire.md");
    let mut lines = page.lines();
    let line = lines.find(|line| line.starts_with("ACL SETUSER")).unwrap();
    let server = RedisServer::start();
    let mut admin = TestClient::silent(&server);
    let words: Vec<_> = line.split(' ').collect();
    assert_eq!(admin.command(&words).as_text(), Some("OK"));
    let mut client = TestClient::connect_as(&server, "locks", "secret");
    for mode in [Mode::Exclusive, Mode::Shared, permits(2)] {
        let held = client.hold(mode);
        let waiter = client.wait(Mode::Exclusive, 10);
        let lease = Lease {
            claim: held.clone(),
            fence: Fence::new(7).unwrap(),
            slot: None,
        };
        let fence = lease.fence;
        for request in [
            Request::Renew(vec![lease.clone()]),
            Request::Heartbeat(vec![waiter.clone()]),
            Request::ConfirmFence {
                claim: held.clone(),
                fence,
            },
            Request::DrawFence {
                claim: held.clone(),
            },
            Request::Repair(vec![lease]),
            Request::Status,
            Request::RecordObservation(vec![(
                MemberId::new("a"),
                DataGeneration::parse(LIFE).unwrap(),
            )]),
        ] {
            let reply = client.ask(&request);
            assert!(
                !format!("{reply:?}").contains("Failed"),
                "{request:?} {reply:?}"
            );
        }
        assert!(!client.heartbeat(&[&waiter])[0].busy.cannot_notify);
        client.codec.foreign_gap = std::time::Duration::from_millis(150);
        let next = client.claim(Mode::Shared);
        assert!(client.release_to(&held, None, Some((&next, 20))).0);
        client.release(&next);
        client.release(&waiter);
        assert_eq!(client.value(), None);
    }
}

#[test]
fn missing_right_is_named() {
    let server = RedisServer::start();
    let mut client = TestClient::connect(&server);
    client.command(&["ACL", "SETUSER", "default", "-zadd"]);
    let claim = client.claim(Mode::Exclusive);
    let error = client.acquire(&claim, Place::None).failed();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("+zadd"), "{error}");
}

#[test]
fn forgotten_script_is_loaded_again() {
    let server = RedisServer::start();
    let mut client = TestClient::connect(&server);
    let held = client.hold(Mode::Exclusive);
    client.command(&["SCRIPT", "FLUSH"]);
    assert!(client.release(&held));
}
