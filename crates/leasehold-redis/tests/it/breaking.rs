//! Locks as operators see, list and break them.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::env::SystemEntropy;
use leasehold::look::{BreakOptions, BreakOutcome, ClientId, Owner, Pattern};
use leasehold::{LostReason, Mode};
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{calls, client, client_at, hold, is_busy, left, share, start};

const FENCES: &str = "leasehold:fence:0:{deploy}:deploy";
const WEEK_MS: i64 = 7 * 24 * 60 * 60 * 1000;

#[tokio::test]
async fn shown_fence_is_that_of_the_holder() {
    let server = RedisServer::start();
    let (holder, other) = (client(&server), client(&server));
    let shown = async || other.holders("deploy").await.unwrap()[0].fence;
    for round in 0..20 {
        if round == 10 {
            // From now on the counter is ahead of all clocks.
            let ahead = SystemClock.wall().as_micros() + 3_600_000_000;
            server.command(&["ZADD", FENCES, &ahead.to_string(), "f"]);
        }
        let guard = holder.lock("deploy").ttl(Duration::from_secs(1));
        let guard = guard.acquire().await.unwrap();
        assert_eq!(shown().await, Some(guard.fence()));
        // Refused attempts raise the counter.
        assert!(is_busy(&other, "deploy").await);
        assert_eq!(shown().await, Some(guard.fence()));
        if round % 7 == 0 {
            guard.deadline_moved(guard.deadline()).await;
            assert_eq!(shown().await, Some(guard.fence()));
        }
        guard.release().await.unwrap();
    }
    let notes = server.command(&["ZCARD", FENCES]);
    assert!(matches!(notes, Reply::Integer(..=3)), "{notes:?}");
}

#[tokio::test]
async fn break_is_recorded_over_damaged_notes() {
    let (server, holder) = start();
    let operator = client(&server);
    let record = "leasehold:broken:{deploy}:deploy";
    server.command(&["SET", record, "theirs"]);
    assert_eq!(operator.last_break("deploy").await.unwrap(), None);
    let lock = holder.lock("deploy").ttl(Duration::from_secs(2));
    let guard = lock.acquire().await.unwrap();
    let how = BreakOptions::at_its_end();
    let broken = operator.break_lock("deploy", guard.fence(), how).await;
    assert!(matches!(broken.unwrap(), BreakOutcome::Done(..)));
    let kept = left(&server, record);
    assert!((WEEK_MS - 60_000..=WEEK_MS).contains(&kept), "{kept}");
    let last = operator.last_break("deploy").await.unwrap().unwrap();
    assert_eq!(
        (last.owner, last.fence),
        (guard.owner(), Some(guard.fence()))
    );
    assert_eq!(guard.lost().await, LostReason::Broken);
}

#[tokio::test]
async fn damaged_counter_hides_only_the_fence() {
    let server = RedisServer::start();
    let holder = client(&server);
    let guard = hold(&holder, "deploy").await;
    server.command(&["SET", FENCES, "text"]);
    let holders = holder.holders("deploy").await.unwrap();
    assert_eq!(
        (holders[0].owner, holders[0].fence),
        (Some(guard.owner()), None)
    );
}

#[tokio::test]
async fn listing_of_many_locks_is_short_commands() {
    const LOCKS: usize = 100_000;
    let (server, locks) = start();
    let owner = Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy).to_string();
    for part in (0..LOCKS).collect::<Vec<_>>().chunks(1000) {
        let names: Vec<String> = part.iter().map(|it| format!("lock/{it:06}")).collect();
        let pairs = names.iter().flat_map(|name| [name, &*owner]);
        server.command(&["MSET"].into_iter().chain(pairs).collect::<Vec<_>>());
    }
    server.command(&["CONFIG", "RESETSTAT"]);
    let pattern = Pattern::new("lock/0*7").unwrap();
    let listing = locks.list_locks(&pattern, 1000).await.unwrap();
    assert_eq!(listing.locks.len(), 1000);
    assert!(listing.more);
    assert_eq!(listing.locks[0].key.as_str(), "lock/000007");
    assert_eq!(listing.locks[999].key.as_str(), "lock/009997");

    assert_eq!(calls(&server, "keys"), 0, "KEYS looks at all keys at once");
    let (scans, looks) = (calls(&server, "scan"), calls(&server, "mget"));
    assert!(scans >= (LOCKS / 1024) as u64, "{scans} steps");
    assert!(
        looks < (LOCKS / 10) as u64,
        "{looks} looks, and not one per lock"
    );
}

#[tokio::test]
async fn listing_finds_locks_behind_a_prefix() {
    let server = RedisServer::start();
    let (own, other) = (
        client_at(&format!("{}?prefix=app:", server.url())),
        client(&server),
    );
    let guard = hold(&own, "deploy").await;
    let _other = hold(&other, "other").await;
    // A shared lock without a holder.
    server.command(&["SET", "app:doc", "leasehold:shared", "PX", "60000"]);
    let listing = own.list_locks(&Pattern::all(), 9).await.unwrap();
    let [lock] = listing.locks.as_slice() else {
        panic!("one lock: {listing:?}")
    };
    assert_eq!(lock.key.as_str(), "deploy");
    let shown = &lock.holders[0].holder;
    let expected = (Some(guard.owner()), Some(guard.fence()));
    assert_eq!((shown.owner, shown.fence), expected);
    assert!(shown.remaining.is_some(), "{shown:?}");
}

#[tokio::test]
async fn reader_is_shown_behind_many_that_crashed() {
    let (server, reader) = start();
    let guard = share(&reader, "doc").await;
    let crashed = (0..1100).flat_map(|number| {
        let owner = Owner::random(reader.id(), &SystemEntropy).to_string();
        [(1_700_000_000_000_u64 + number).to_string(), owner]
    });
    let crashed: Vec<String> = crashed.collect();
    let mut command = vec!["ZADD", "leasehold:readers:{doc}:doc"];
    command.extend(crashed.iter().map(String::as_str));
    assert_eq!(server.command(&command), Reply::Integer(1100));
    assert_eq!(reader.holders("doc").await.unwrap().len(), 1);
    let listing = reader.list_locks(&Pattern::all(), 9).await.unwrap();
    let shown = &listing.locks[0].holders[0].holder;
    let expected = (Some(guard.owner()), Mode::Shared);
    assert_eq!((shown.owner, shown.mode), expected);
}
