//! Locks that several hold together, each with one of their permits. Their queue: `queue/permits.rs`.

use std::time::Duration;

use leasehold::{
    Attempt, Busy, Claim, Counting, Departure, Effect, ErrorKind, Inspection as _, LostReason,
    Member, Mode, Permits, Release, Renewal, Seal, Slot, Store,
};
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{
    self, busy, claim, claim_for, eventually, granted, held, key, member, queued, refused,
    released, shared, value,
};

const READERS: &str = "leasehold:readers:{workers}:workers";
const SLOTS: &str = "leasehold:slots:{workers}:workers";

fn permits(count: u32) -> Permits {
    Permits::new(count).unwrap()
}

/// A claim of a new owner on one of so many permits of `workers`.
fn one_of(count: u32) -> Claim {
    support::one_of("workers", count)
}

fn permit(number: u32, count: u32) -> Claim {
    let slot = Slot::new(number, permits(count)).unwrap();
    one_of(count).with_slot(slot)
}

fn free(busy: &Busy) -> Vec<u32> {
    busy.free.iter().map(Slot::get).collect()
}

fn left(server: &RedisServer, key: &str) -> i64 {
    match server.command(&["PTTL", key]) {
        Reply::Integer(left) => left,
        other => panic!("{other:?}"),
    }
}

fn owner_of(server: &RedisServer, slot: &str) -> Reply {
    server.command(&["HGET", SLOTS, slot])
}

fn text(claim: &Claim) -> Reply {
    Reply::Bulk(claim.owner.to_string())
}

#[tokio::test]
async fn as_many_hold_as_there_are_permits_and_one_more_when_one_leaves() {
    let server = RedisServer::start();
    let store = member(&server);
    assert_eq!(store.guarantees().counting, Counting::Permits);
    let mine = [one_of(3), one_of(3), one_of(3)];
    let mut last = 0;
    for claim in &mine {
        let fence = granted(&store, claim).await.fence.get();
        assert!(fence > last, "each has a fence of its own");
        last = fence;
    }
    let late = one_of(3);
    let refusal = busy(&store, &late).await;
    assert_eq!((refusal.holder, free(&refusal)), (None, vec![]));
    let fence = granted(&store, &mine[1]).await.fence;
    assert!(fence.get() > last, "a resend");
    busy(&store, &late).await;
    released(&store, &mine[1]).await;
    assert_eq!(store.release(&mine[1]).await.unwrap(), Release::WasLost);
    assert!(granted(&store, &late).await.fence > fence);
    assert_eq!(owner_of(&server, "1"), text(&late), "the one that was free");
    for claim in [&mine[0], &mine[2], &late] {
        released(&store, claim).await;
    }
    for record in ["workers", READERS, SLOTS] {
        let left = server.command(&["EXISTS", record]);
        assert_eq!(left, Reply::Integer(0), "{record}");
    }
}

#[tokio::test]
async fn the_records_are_those_of_wire_v1() {
    let server = RedisServer::start();
    let store = member(&server);
    let (first, second) = (permit(2, 3), one_of(3));
    granted(&store, &first).await;
    granted(&store, &second).await;
    let sentinel = Reply::Bulk("leasehold:permits:3".into());
    assert_eq!(value(&server, "workers"), sentinel);
    assert_eq!(owner_of(&server, "2"), text(&first));
    assert_eq!(owner_of(&server, "0"), text(&second), "the lowest");
    let entries = server.command(&["HLEN", SLOTS]);
    assert_eq!(entries, Reply::Integer(2));
    let ends = |claim: &Claim| server.command(&["ZSCORE", READERS, &claim.owner.to_string()]);
    let expires = |key: &str| match server.command(&["PEXPIRETIME", key]) {
        Reply::Integer(at) => Reply::Bulk(at.to_string()),
        other => panic!("{other:?}"),
    };
    assert_ne!(ends(&first), Reply::Nil);
    for record in ["workers", READERS, SLOTS] {
        assert_eq!(expires(record), ends(&second), "{record}");
    }
    released(&store, &second).await;
    for record in ["workers", READERS, SLOTS] {
        assert_eq!(expires(record), ends(&first), "{record}");
    }
    let lease = held(&first, &granted(&store, &first).await);
    let mut longer = (*lease.claim).clone();
    longer.ttl *= 2;
    let longer = held(&longer, &granted(&store, &longer).await);
    store.renew(&[longer]).await;
    for record in ["workers", READERS, SLOTS] {
        assert!(left(&server, record) > 60_000, "{record}");
        assert_eq!(expires(record), ends(&first), "{record}");
    }
}

#[tokio::test]
async fn of_two_on_one_permit_one_gets_it_and_the_other_hears_which_are_free() {
    let server = RedisServer::start();
    let store = member(&server);
    let first = permit(1, 3);
    granted(&store, &first).await;
    let second = permit(1, 3);
    assert_eq!(free(&busy(&store, &second).await), [0, 2]);
    // Whatever it names, an owner that has a permit keeps that one.
    let again = first.clone().with_slot(Slot::new(0, permits(3)).unwrap());
    granted(&store, &again).await;
    assert_eq!(free(&busy(&store, &second).await), [0, 2]);
    released(&store, &again).await;
    granted(&store, &second).await;
    // The late message of one that has left: not a second permit beside the one it had.
    granted(&store, &again).await;
    assert_eq!(free(&busy(&store, &permit(0, 3)).await), [2]);
    assert_eq!(owner_of(&server, "1"), text(&second));
}

#[tokio::test]
async fn a_permit_that_is_not_there_is_refused_before_anything_is_sent() {
    let server = RedisServer::start();
    let store = member(&server);
    let mut wrong = permit(2, 3);
    wrong.mode = Mode::Permit(permits(2));
    for turn in [false, true] {
        let error = match turn {
            false => refused(&store, &wrong).await,
            true => store
                .acquire_in_turn(&wrong, &queued(&wrong))
                .await
                .unwrap_err(),
        };
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("permit 2 of 2"), "{error}");
    }
    assert_eq!(server.command(&["DBSIZE"]), Reply::Integer(0));
}

#[tokio::test]
async fn a_refusal_says_when_the_first_permit_ends() {
    let server = RedisServer::start();
    let store = member(&server);
    let (mut short, long) = (one_of(2), one_of(2));
    short.ttl = Duration::from_secs(20);
    granted(&store, &long).await;
    granted(&store, &short).await;
    let late = one_of(2);
    let told = busy(&store, &late).await.remaining.unwrap();
    assert!(told <= short.ttl && told > Duration::ZERO, "{told:?}");
    let answer = store.acquire_in_turn(&late, &queued(&late)).await;
    let Ok(Attempt::Busy(answer)) = answer else {
        panic!("{answer:?}")
    };
    assert!(answer.remaining.unwrap() <= short.ttl, "{answer:?}");
    // Who wants it alone waits for all of them.
    let writer = claim("workers");
    let answer = store.acquire_in_turn(&writer, &queued(&writer)).await;
    let Ok(Attempt::Busy(answer)) = answer else {
        panic!("{answer:?}")
    };
    assert!(answer.remaining.unwrap() > short.ttl, "{answer:?}");
}

#[tokio::test]
async fn another_mode_is_busy_and_another_number_is_told_both() {
    let server = RedisServer::start();
    let store = member(&server);
    let mine = one_of(3);
    granted(&store, &mine).await;
    for other in [claim("workers"), shared("workers")] {
        let refusal = busy(&store, &other).await;
        assert_eq!((refusal.holder, refusal.silent), (None, false));
        assert_eq!(free(&refusal), []);
        let answer = store.acquire_in_turn(&other, &queued(&other)).await;
        assert!(matches!(answer, Ok(Attempt::Busy(_))), "{answer:?}");
        store.leave_queue(&other.key, other.owner).await.unwrap();
    }
    for count in [1, 2, 4, 128] {
        let other = one_of(count);
        let error = refused(&store, &other).await;
        let in_turn = store.acquire_in_turn(&other, &queued(&other)).await;
        for error in [error, in_turn.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
            assert_eq!(error.effect(), Effect::None);
            let text = error.to_string();
            let both = format!("with 3 permits, not {count}");
            assert!(text.contains(&both), "{text}");
        }
        assert!(store.waiters(&other.key).await.unwrap().is_empty());
        assert_eq!(store.release(&other).await.unwrap(), Release::WasLost);
    }
    released(&store, &mine).await;
    // The number is the lock's as long as a permit is held.
    let other = one_of(1);
    granted(&store, &other).await;
    released(&store, &other).await;
    for holder in [claim("workers"), shared("workers")] {
        granted(&store, &holder).await;
        let refusal = busy(&store, &one_of(3)).await;
        let alone = holder.mode == Mode::Exclusive;
        assert_eq!(refusal.holder, alone.then_some(holder.owner));
        assert_eq!((free(&refusal), refusal.remaining), (vec![], None));
        released(&store, &holder).await;
    }
}

#[tokio::test]
async fn no_other_library_gets_in_while_a_permit_is_held() {
    let server = RedisServer::start();
    let store = member(&server);
    let foreign = || server.command(&["SET", "workers", "token", "NX", "PX", "1000"]);
    let (mine, other) = (one_of(2), one_of(2));
    let lease = held(&mine, &granted(&store, &mine).await);
    assert_eq!(foreign(), Reply::Nil);
    granted(&store, &other).await;
    released(&store, &other).await;
    assert_eq!(foreign(), Reply::Nil);
    store.renew(&[lease]).await;
    assert_eq!(foreign(), Reply::Nil);
    released(&store, &mine).await;
    assert_eq!(foreign(), Reply::Status("OK".into()));
    let refusal = busy(&store, &mine).await;
    assert!(refusal.silent);
    let answers = store.renew(&[held(&mine, &granted_elsewhere())]).await;
    assert!(
        matches!(answers[..], [Renewal::Lost(LostReason::Taken)]),
        "{answers:?}"
    );
    assert_eq!(store.release(&mine).await.unwrap(), Release::WasLost);
    assert_eq!(value(&server, "workers"), Reply::Bulk("token".into()));
}

fn granted_elsewhere() -> leasehold::Grant {
    leasehold::Grant::new(leasehold::Fence::new(1).unwrap())
}

#[tokio::test]
async fn a_permit_is_sealed_and_renewed_as_long_as_it_stands() {
    let server = RedisServer::start();
    let store = member(&server);
    let (mine, other) = (one_of(2), one_of(2));
    let grant = granted(&store, &mine).await;
    let far = leasehold::Fence::new(grant.fence.get() + 1_000_000).unwrap();
    assert_eq!(store.seal(&other, far).await.unwrap().answer, Seal::NotHeld);
    assert_eq!(store.seal(&mine, far).await.unwrap().answer, Seal::Sealed);
    assert!(granted(&store, &other).await.fence > far);
    // Among leases of all modes, which have not as many records.
    let (alone, together) = (claim("alone"), shared("together"));
    let mut leases = Vec::new();
    for claim in [&alone, &mine, &together, &other] {
        leases.push(held(claim, &granted(&store, claim).await));
    }
    released(&store, &other).await;
    let answers = store.renew(&leases).await;
    assert!(
        matches!(
            answers[..],
            [
                Renewal::Renewed,
                Renewal::Renewed,
                Renewal::Renewed,
                Renewal::Lost(_)
            ]
        ),
        "{answers:?}"
    );
    let tombstone = format!("leasehold:broken:{}", mine.owner);
    server.command(&["SET", "workers", &tombstone]);
    let answers = store.renew(&leases[1..2]).await;
    assert!(
        matches!(answers[..], [Renewal::Lost(LostReason::Broken)]),
        "{answers:?}"
    );
    server.command(&["DEL", "workers"]);
    let answers = store.renew(&leases[1..2]).await;
    assert!(
        matches!(answers[..], [Renewal::Lost(LostReason::Gone)]),
        "{answers:?}"
    );
    // No lease of before the sentinel was deleted comes back to life with a new one.
    granted(&store, &other).await;
    let answers = store.renew(&leases[1..2]).await;
    assert!(matches!(answers[..], [Renewal::Lost(_)]), "{answers:?}");
    assert_eq!(free(&busy(&store, &permit(0, 2)).await), [1]);
}

#[tokio::test]
async fn all_permits_are_free_again_when_all_holders_have_died() {
    let server = RedisServer::start();
    let store = member(&server);
    for _ in 0..3 {
        let mut dies = one_of(3);
        dies.ttl = Duration::from_millis(200);
        granted(&store, &dies).await;
    }
    let next = [one_of(3), one_of(3), one_of(3)];
    for claim in &next {
        eventually("a permit is free", async || {
            let attempt = store.acquire(claim).await.unwrap();
            matches!(attempt, Attempt::Granted(_)).then_some(())
        })
        .await;
    }
    busy(&store, &one_of(3)).await;
    assert_eq!(store.holders(&key("workers")).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_holder_that_died_frees_its_permit_while_others_go_on() {
    let server = RedisServer::start();
    let store = member(&server);
    let stays = permit(0, 2);
    granted(&store, &stays).await;
    let dies = claim_for("workers", Duration::from_millis(200))
        .with_mode(stays.mode)
        .with_slot(Slot::new(1, permits(2)).unwrap());
    let lease = held(&dies, &granted(&store, &dies).await);
    let next = permit(1, 2);
    eventually("the permit is free", async || {
        let attempt = store.acquire(&next).await.unwrap();
        matches!(attempt, Attempt::Granted(_)).then_some(())
    })
    .await;
    assert_eq!(owner_of(&server, "1"), text(&next));
    let answers = store.renew(&[lease]).await;
    assert!(matches!(answers[..], [Renewal::Lost(_)]), "{answers:?}");
    assert_eq!(store.release(&dies).await.unwrap(), Release::WasLost);
    busy(&store, &one_of(2)).await;
}

#[tokio::test]
async fn holders_are_named_with_what_is_left_of_each() {
    let server = RedisServer::start();
    let store = member(&server);
    let (mut short, long) = (one_of(128), one_of(128));
    short.ttl = Duration::from_secs(20);
    for claim in [&short, &long] {
        granted(&store, claim).await;
    }
    let holders = store.holders(&key("workers")).await.unwrap();
    assert_eq!(holders.len(), 2);
    for (holder, claim) in holders.iter().zip([&short, &long]) {
        assert_eq!(holder.owner, Some(claim.owner));
        assert_eq!(holder.mode, claim.mode);
        assert!(holder.client.is_some());
        let left = holder.remaining.unwrap();
        assert!(left <= claim.ttl && left > claim.ttl / 2, "{left:?}");
    }
    let listed = store.list("work", 10).await.unwrap();
    assert_eq!(listed, [key("workers")]);
}

#[tokio::test]
async fn all_of_128_permits_have_a_number_of_their_own() {
    let server = RedisServer::start();
    let store = member(&server);
    for _ in 0..127 {
        granted(&store, &one_of(128)).await;
    }
    assert_eq!(free(&busy(&store, &permit(0, 128)).await), [127]);
    granted(&store, &one_of(128)).await;
    assert_eq!(free(&busy(&store, &one_of(128)).await), []);
    let entries = server.command(&["HLEN", SLOTS]);
    assert_eq!(entries, Reply::Integer(128));
}

/// Whatever part of the records is gone: somebody may have a permit of which nothing is known.
#[tokio::test]
async fn where_records_are_missing_nothing_is_free_until_the_leases_are_over() {
    for missing in [SLOTS, READERS] {
        let server = RedisServer::start();
        let store = member(&server);
        let mine = one_of(3);
        granted(&store, &mine).await;
        server.command(&["DEL", missing]);
        for _ in 0..2 {
            assert_eq!(free(&busy(&store, &one_of(3)).await), [], "{missing}");
        }
        let waits = one_of(3);
        let answer = store.acquire_in_turn(&waits, &queued(&waits)).await;
        assert!(matches!(answer, Ok(Attempt::Busy(_))), "{answer:?}");
        store.leave_queue(&waits.key, waits.owner).await.unwrap();
        store.release(&mine).await.unwrap();
        server.command(&["DEL", "workers"]);
        granted(&store, &one_of(3)).await;
    }
}

#[tokio::test]
async fn records_of_another_type_are_named_and_keep_no_permit() {
    for record in ["workers", READERS, SLOTS] {
        let server = RedisServer::start();
        let store = member(&server);
        let mine = one_of(3);
        granted(&store, &mine).await;
        server.command(&["DEL", record]);
        server.command(&["RPUSH", record, "text"]);
        let other = one_of(3);
        let error = refused(&store, &other).await;
        let in_turn = store.acquire_in_turn(&other, &queued(&other)).await;
        for error in [error, in_turn.unwrap_err()] {
            let kind = match record {
                "workers" => ErrorKind::ForeignLock,
                _ => ErrorKind::Corrupt,
            };
            assert_eq!(error.kind(), kind, "{record}: {error}");
        }
        let named = refused(&store, &other).await.to_string();
        let word = if record == "workers" {
            "a list"
        } else {
            "slots"
        };
        assert!(named.contains(word), "{named}");
        store.leave_queue(&other.key, other.owner).await.ok();
        store.depart(&mine, &Departure::HandOver).await.ok();
        server.command(&["DEL", record, "workers"]);
        let next = one_of(3);
        granted(&store, &next).await;
        released(&store, &next).await;
    }
}
