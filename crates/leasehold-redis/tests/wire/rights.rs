//! Users that lack a right.

use leasehold::Mode;
use leasehold::member::{DataGeneration, MemberId};
use leasehold_quorum::{Position, Request};
use leasehold_testkit::servers::RedisServer;

use crate::fixture::{TestClient, lease, permits};

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
    let refused = client.refusal(Mode::Exclusive, Position::Ticket(20));
    assert!(refused.busy.cannot_notify);
    client.acquire(&waiter, Position::Ticket(10)).granted();
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
        let (held, waiter) = (client.hold(mode), client.wait(Mode::Exclusive, 10));
        let (lock_request, lease) = (held.clone(), lease(&held, 7, None));
        let seen = DataGeneration::parse("0123456789abcdef").unwrap();
        for request in [
            Request::Renew(vec![lease.clone()]),
            Request::DrawFence { lock_request },
            Request::Repair(vec![lease]),
            Request::Status,
            Request::RecordObservation(vec![(MemberId::new("a"), seen)]),
        ] {
            let reply = format!("{:?}", client.ask(&request));
            assert!(!reply.contains("Failed"), "{request:?} {reply}");
        }
        client.confirm(&held, 7);
        assert!(!client.heartbeat(&[&waiter])[0].busy.cannot_notify);
        let next = client.lock_request(Mode::Shared);
        assert!(client.release_to(&held, None, Some((&next, 20))).0);
        client.release(&next);
        client.release(&waiter);
        assert_eq!(client.value(), None);
    }
}
