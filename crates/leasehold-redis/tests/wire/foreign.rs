//! Turns for clients of other libraries, which poll and know no queue.

use std::time::Duration;

use leasehold::Mode;
use leasehold_quorum::Position;
use leasehold_redis::codec::Codec;
use leasehold_redis::resp::Value;
use leasehold_testkit::servers::RedisServer;

use crate::fixture::{TestClient, server, start};

const GAP: Duration = Codec::FOREIGN_GAP;
const POLL: Option<Duration> = Some(Duration::from_millis(25));

/// Moves the server's clock, and keeps the client present.
fn forward(server: &RedisServer, client: &mut TestClient, span: Duration) {
    server.clock().forward(span);
    client.heartbeat(&[]);
}

/// Does one contended release. Returns whether it left the lock free for other clients.
///
/// The first one begins the period of gaps. Those after it take the short path until a gap is due.
pub(crate) fn hands_over_with_gap(client: &mut TestClient) -> bool {
    let held = client.hold(Mode::Exclusive);
    let waiter = client.wait(Mode::Exclusive, 10);
    client.release(&held);
    assert_eq!(client.notified(), [waiter.owner]);
    let has_gap = client.value().is_none();
    let refused = has_gap.then(|| client.acquire(&waiter, Position::Ticket(10)).refused());
    if let Some(refused) = refused {
        assert_eq!(refused.ask_again, POLL);
        assert_eq!(refused.busy.position, Some(1));
    }
    client.release(&waiter);
    has_gap
}

#[test]
fn contended_lock_is_free_now_and_then() {
    let server = server();
    let mut client = TestClient::connect(&server);
    // The period begins with the first contended release.
    assert!(!hands_over_with_gap(&mut client));
    forward(&server, &mut client, Duration::from_secs(3));
    assert!(!hands_over_with_gap(&mut client));
    forward(&server, &mut client, Duration::from_millis(2100));
    assert!(hands_over_with_gap(&mut client));
    forward(&server, &mut client, GAP + Duration::from_secs(3));
    assert!(!hands_over_with_gap(&mut client));
    forward(&server, &mut client, Duration::from_millis(2100));
    assert!(hands_over_with_gap(&mut client));
    // After a long time without contention no gap is due.
    forward(&server, &mut client, Duration::from_secs(25));
    assert!(!hands_over_with_gap(&mut client));
}

#[test]
fn gap_ends_after_its_length() {
    let server = server();
    let mut client = TestClient::connect(&server);
    hands_over_with_gap(&mut client);
    forward(&server, &mut client, Duration::from_secs(6));
    let held = client.hold(Mode::Exclusive);
    let waiter = client.wait(Mode::Exclusive, 10);
    client.release(&held);
    client.refusal(Mode::Exclusive, Position::None);
    client.acquire(&waiter, Position::Ticket(10)).refused();
    let plain = client.command(&["SET", "deploy", "token", "NX", "PX", "50"]);
    assert_eq!(plain.as_text(), Some("OK"));
    client.acquire(&waiter, Position::Ticket(10)).refused();
    client.command(&["DEL", "deploy"]);
    forward(&server, &mut client, GAP);
    client.acquire(&waiter, Position::Ticket(10)).granted();
}

#[test]
fn barging_attempt_takes_the_lock_in_a_gap() {
    let server = server();
    let mut client = TestClient::connect(&server);
    hands_over_with_gap(&mut client);
    forward(&server, &mut client, Duration::from_secs(6));
    let held = client.hold(Mode::Exclusive);
    let waiter = client.wait(Mode::Exclusive, 10);
    client.release(&held);
    client.acquire(&waiter, Position::Ticket(10)).refused();
    let barging = client.lock_request(Mode::Exclusive);
    client.acquire(&barging, Position::Barging).granted();
}

#[test]
fn gaps_are_frequent_once_a_foreign_client_came() {
    let server = server();
    let mut client = TestClient::connect(&server);
    hands_over_with_gap(&mut client);
    client.command(&["SET", "deploy", "token", "PX", "60000"]);
    let waiter = client.wait(Mode::Exclusive, 10);
    client.release(&waiter);
    client.command(&["DEL", "deploy"]);
    for span in [1100, 1200] {
        forward(&server, &mut client, Duration::from_millis(span));
        assert!(hands_over_with_gap(&mut client));
        forward(&server, &mut client, GAP);
        assert!(!hands_over_with_gap(&mut client));
    }
    forward(&server, &mut client, Duration::from_secs(3601));
    assert!(!hands_over_with_gap(&mut client), "a new period");
    forward(&server, &mut client, Duration::from_millis(1200));
    assert!(
        !hands_over_with_gap(&mut client),
        "no foreign client for an hour"
    );
}

#[test]
fn head_polls_while_a_foreign_client_holds() {
    let server = server();
    let mut client = TestClient::connect(&server);
    client.command(&["SET", "deploy", "token"]);
    let refused = client.refusal(Mode::Exclusive, Position::Ticket(1));
    assert_eq!(refused.ask_again, POLL);
    assert_eq!(refused.busy.remaining, None);
    let refused = client.refusal(Mode::Exclusive, Position::Ticket(2));
    assert_eq!(refused.ask_again, None);
}

#[test]
fn release_in_a_gap_notifies_other_waiters() {
    let server = server();
    let (mut client, mut other) = (TestClient::connect(&server), TestClient::connect(&server));
    hands_over_with_gap(&mut client);
    forward(&server, &mut client, Duration::from_secs(6));
    other.heartbeat(&[]);
    let held = client.hold(Mode::Exclusive);
    let older = other.wait(Mode::Exclusive, 5);
    let own = client.wait(Mode::Exclusive, 10);
    let (_, successor) = client.release_to(&held, None, Some((&own, 10)));
    assert_eq!(successor, None);
    assert_eq!(other.notified(), [older.owner]);
    assert_eq!(client.value(), None);
}

#[test]
fn successor_is_called_in_a_gap() {
    let server = server();
    let mut client = TestClient::connect(&server);
    hands_over_with_gap(&mut client);
    forward(&server, &mut client, Duration::from_secs(6));
    let held = client.hold(Mode::Exclusive);
    let own = client.wait(Mode::Exclusive, 10);
    let (_, successor) = client.release_to(&held, None, Some((&own, 10)));
    assert_eq!(successor, None);
    assert_eq!(client.notified(), [own.owner]);
    assert_eq!(client.value(), None);
}

#[test]
fn plain_clients_are_kept_out_by_every_value() {
    let (_server, mut client) = start();
    let plain = ["SET", "deploy", "token", "NX", "PX", "1000"];
    for mode in [Mode::Exclusive, Mode::Shared, crate::fixture::permits(2)] {
        let held = client.hold(mode);
        let waiter = client.wait(Mode::Exclusive, 10);
        assert_eq!(client.command(&plain), Value::Null, "{mode}");
        client.release(&held);
        assert_eq!(client.command(&plain), Value::Null, "{mode}, next");
        client.release(&waiter);
    }
    assert_eq!(client.command(&plain).as_text(), Some("OK"));
}
