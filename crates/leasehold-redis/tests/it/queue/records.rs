//! What others left under the names of the queue's records, and what is left of it.

use leasehold::{Departure, ErrorKind, Inspection as _, Member, Mode, Release};
use leasehold_testkit::servers::{RedisServer, Reply};

use super::party::{OFFERED, Party, QUEUE};
use crate::support::{key, value};

#[tokio::test]
async fn a_lock_of_another_library_is_silent() {
    let server = RedisServer::start();
    let party = Party::at(&server);
    let waiting = party.since(1);
    for (foreign, ends) in [
        (&["SET", "deploy", "token"][..], false),
        (&["SET", "deploy", "token", "PX", "60000"], true),
        (&["SET", "deploy", "leasehold:broken:by ann"], false),
        (&["SET", "deploy", "leasehold:next:7:somebody"], false),
        (&["SET", "deploy", ""], false),
    ] {
        server.command(foreign);
        let busy = party.busy(waiting).await;
        assert!(busy.silent, "{foreign:?}");
        assert_eq!((busy.holder, busy.place), (None, Some(1)));
        assert_eq!(busy.remaining.is_some(), ends, "{foreign:?}");
    }
    server.command(&["DEL", "deploy"]);
    let (held, _) = party.granted(waiting).await;
    party.releases(&held).await;
    server.command(&["HSET", "deploy", "uuid:1", "1"]);
    let error = party.asks(waiting).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForeignLock);
    assert!(error.to_string().contains("a hash"), "{error}");
    party.leaves(waiting).await;
    let release = party.departs(&held, Departure::HandOver).await;
    assert_eq!(release, Release::WasLost);
    assert!(
        party
            .member
            .waiters(&key("deploy"))
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_damaged_record_is_named_and_keeps_no_lock() {
    for record in [QUEUE, OFFERED] {
        let server = RedisServer::start();
        let party = Party::at(&server);
        for mode in [Mode::Exclusive, Mode::Shared] {
            let mut waiting = party.since(1);
            waiting.mode = mode;
            let held = party.takes(mode).await;
            server.command(&["SET", record, "text"]);
            let error = party.asks(waiting).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            let text = error.to_string();
            assert!(
                text.contains(":queue:") && text.contains("delete it"),
                "{text}"
            );
            for departure in [
                Departure::HandOver,
                Departure::LeaveFree(leasehold::RESERVATION),
                Departure::Requeue(waiting.ticket),
            ] {
                let release = party.departs(&held, departure).await;
                assert_eq!(value(&server, "deploy"), Reply::Nil, "{departure:?}");
                let first = departure == Departure::HandOver;
                assert_eq!(release == Release::Released, first);
            }
            let held = party.takes(Mode::Exclusive).await;
            let waiter = waiting.ticket.waiter;
            let left = party.member.leave_queue(&key("deploy"), waiter).await;
            assert_eq!(left.unwrap_err().kind(), ErrorKind::Corrupt);
            server.command(&["DEL", record]);
            party.releases(&held).await;
            let (held, _) = party.granted(waiting).await;
            party.releases(&held).await;
            server.command(&["DEL", QUEUE, OFFERED]);
        }
    }
}

#[tokio::test]
async fn entries_that_make_no_sense_are_passed_over() {
    let server = RedisServer::start();
    let (holder, waiter) = (Party::at(&server), Party::at(&server));
    let held = holder.takes(Mode::Exclusive).await;
    let waiting = waiter.since(5);
    waiter.busy(waiting).await;
    for entry in ["", "x", "/s", "0123456789abcdef", "deploy the thing/s"] {
        server.command(&["ZADD", QUEUE, "1", entry]);
    }
    assert_eq!(waiter.queue().await, [waiting.ticket]);
    holder.releases(&held).await;
    waiter.hears_its_turn(waiting).await;
    assert_eq!(server.command(&["EXISTS", QUEUE]), Reply::Integer(0));
    waiter.granted(waiting).await;
}

fn lives_at_most(server: &RedisServer, record: &str, ms: i64) {
    let left = server.command(&["PTTL", record]);
    assert!(
        matches!(left, Reply::Integer(left) if left > 0 && left <= ms),
        "{record}: {left:?}"
    );
}

#[tokio::test]
async fn everything_that_waiting_leaves_has_an_end() {
    let server = RedisServer::start();
    let (holder, waiter) = (Party::at(&server), Party::at(&server));
    let held = holder.takes(Mode::Exclusive).await;
    let (first, second) = (waiter.since(1), waiter.since(2));
    waiter.busy(first).await;
    lives_at_most(&server, QUEUE, 30_000);
    server.command(&["PEXPIRE", QUEUE, "600000"]);
    waiter.busy(second).await;
    lives_at_most(&server, QUEUE, 30_000);
    holder.releases(&held).await;
    waiter.hears_its_turn(first).await;
    lives_at_most(&server, OFFERED, 30_000);
    let (held, _) = waiter.granted(first).await;
    assert_eq!(server.command(&["EXISTS", OFFERED]), Reply::Integer(0));
    let gap = Departure::LeaveFree(leasehold::RESERVATION);
    waiter.departs(&held, gap).await;
    lives_at_most(&server, OFFERED, 30_000);
    waiter.leaves(second).await;
    let Reply::Array(keys) = server.command(&["KEYS", "*"]) else {
        panic!("KEYS")
    };
    for key in keys {
        let Reply::Bulk(key) = key else {
            panic!("{key:?}")
        };
        lives_at_most(&server, &key, 7 * 24 * 3_600_000);
    }
}
