//! Locks that an operator breaks.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::env::SystemEntropy;
use leasehold::store::background;
use leasehold::store::{ClientId, ForceRelease, ForceReleaseOutcome, Owner, Pattern};
use leasehold::{Fence, LostReason, Mode};
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{calls, client, client_at, hold, is_busy, left, permit, queued, share};

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
async fn broken_lock_stays_shut_until_the_lease_ends() {
    let server = RedisServer::start();
    let (holder, operator) = (client(&server), client(&server));
    let lock = holder.lock("deploy").ttl(Duration::from_secs(4));
    let guard = lock.acquire().await.unwrap();
    let how = ForceRelease::at_its_end();
    let broken = operator.break_lock("deploy", guard.fence(), how).await;
    let broken = broken.unwrap();
    assert!(
        matches!(broken, ForceReleaseOutcome::Done(..)),
        "{broken:?}"
    );
    let began = SystemClock.now();
    let shut_for = Duration::from_millis(left(&server, "deploy").try_into().unwrap());
    let value = format!("leasehold:broken:{}", guard.owner());
    assert_eq!(server.command(&["GET", "deploy"]), Reply::Bulk(value));
    let theirs = server.command(&["SET", "deploy", "theirs", "NX", "PX", "100"]);
    assert_eq!(theirs, Reply::Nil);
    assert_eq!(
        operator.list("", 9).await.unwrap(),
        [crate::support::key("deploy")]
    );
    let rest = left(&server, "leasehold:broken:{deploy}:deploy");
    assert!((WEEK_MS - 60_000..=WEEK_MS).contains(&rest), "{rest}");
    // A waiter gets it as soon as it is open.
    let waits = background::spawn(operator.lock("deploy").acquire());
    assert_eq!(guard.lost().await, LostReason::Broken);
    let next = waits.await.unwrap().unwrap();
    let shut = SystemClock.now().since(began);
    let late = Duration::from_secs(1);
    assert!(
        shut + Duration::from_millis(100) >= shut_for && shut <= shut_for + late,
        "granted after {shut:?}, and shut for {shut_for:?}"
    );
    assert!(next.fence() > guard.fence());
    next.release().await.unwrap();
}

#[tokio::test]
async fn lock_broken_at_once_passes_on() {
    let server = RedisServer::start();
    let (holder, operator) = (client(&server), client(&server));
    let guard = hold(&holder, "deploy").await;
    let waits = background::spawn(operator.lock("deploy").acquire());
    queued(&server, "deploy", 1).await;
    let how = ForceRelease::at_once();
    let broken = operator.break_lock("deploy", guard.fence(), how).await;
    assert!(matches!(broken.unwrap(), ForceReleaseOutcome::Done(..)));
    let next = waits.await.unwrap().unwrap();
    assert!(next.fence() > guard.fence());
    next.release().await.unwrap();
}

#[tokio::test]
async fn damaged_notes_do_not_hide_a_break() {
    let server = RedisServer::start();
    let (holder, operator) = (client(&server), client(&server));
    let record = "leasehold:broken:{deploy}:deploy";
    server.command(&["SET", record, "theirs"]);
    assert_eq!(operator.last_break("deploy").await.unwrap(), None);
    let lock = holder.lock("deploy").ttl(Duration::from_secs(2));
    let guard = lock.acquire().await.unwrap();
    let how = ForceRelease::at_its_end();
    let broken = operator.break_lock("deploy", guard.fence(), how).await;
    assert!(matches!(broken.unwrap(), ForceReleaseOutcome::Done(..)));
    let last = operator.last_break("deploy").await.unwrap().unwrap();
    assert_eq!((last.owner, last.fence), (guard.owner(), guard.fence()));
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
async fn fence_of_another_lease_breaks_nothing() {
    let server = RedisServer::start();
    let (holder, operator) = (client(&server), client(&server));
    let first = hold(&holder, "deploy").await;
    let stale = first.fence();
    first.release().await.unwrap();
    let guard = hold(&holder, "deploy").await;
    for other in [stale, Fence::new(7).unwrap()] {
        let broken = operator
            .break_lock("deploy", other, ForceRelease::at_once())
            .await;
        let broken = broken.unwrap();
        assert!(
            !matches!(broken, ForceReleaseOutcome::Done(..)),
            "{broken:?}"
        );
    }
    assert!(is_busy(&operator, "deploy").await);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn sixteen_broken_leases_are_remembered() {
    let server = RedisServer::start();
    let (holder, operator) = (client(&server), client(&server));
    let mut guards = Vec::new();
    for _ in 0..20 {
        let guard = hold(&holder, "deploy").await;
        let broken = operator.break_lock("deploy", guard.fence(), ForceRelease::at_once());
        assert!(matches!(
            broken.await.unwrap(),
            ForceReleaseOutcome::Done(..)
        ));
        guards.push(guard);
    }
    let remembered = server.command(&["ZCOUNT", FENCES, "-inf", "(0"]);
    assert_eq!(remembered, Reply::Integer(16));
}

/// Returns the time of the longest command that the server ran, in microseconds.
fn longest(server: &RedisServer) -> i64 {
    let Reply::Array(entries) = server.command(&["SLOWLOG", "GET", "-1"]) else {
        panic!("no slow log")
    };
    let took = entries.iter().map(|entry| match entry {
        Reply::Array(fields) => match fields[2] {
            Reply::Integer(micros) => micros,
            ref other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    took.max().unwrap_or(0)
}

#[tokio::test]
async fn listing_of_many_locks_is_short_commands() {
    const LOCKS: usize = 100_000;
    let server = RedisServer::start();
    for part in (0..LOCKS).collect::<Vec<_>>().chunks(1000) {
        let owner = || Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy).to_string();
        let pairs = part
            .iter()
            .flat_map(|number| [format!("lock/{number:06}"), owner()]);
        let pairs: Vec<String> = pairs.collect();
        let mut command = vec!["MSET"];
        command.extend(pairs.iter().map(String::as_str));
        server.command(&command);
    }
    server.command(&["CONFIG", "RESETSTAT"]);
    server.command(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    server.command(&["CONFIG", "SET", "slowlog-max-len", "100000"]);
    let pattern = Pattern::new("lock/0*7").unwrap();
    let listing = client(&server).list_locks(&pattern, 1000).await.unwrap();
    server.command(&["CONFIG", "SET", "slowlog-log-slower-than", "-1"]);
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
    // DESIGN.md states this figure.
    eprintln!(
        "{LOCKS} locks: {scans} SCAN; the longest command took {} µs",
        longest(&server)
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
    let server = RedisServer::start();
    let reader = client(&server);
    let guard = share(&reader, "doc").await;
    let crashed = (0..1100).flat_map(|number| {
        let owner = Owner::random(reader.id(), &SystemEntropy).to_string();
        [(1_700_000_000_000_u64 + number).to_string(), owner]
    });
    let crashed: Vec<String> = crashed.collect();
    let mut command = vec!["ZADD", "leasehold:readers:{doc}:doc"];
    command.extend(crashed.iter().map(String::as_str));
    assert_eq!(server.command(&command), Reply::Integer(1100));
    let holders = reader.holders("doc").await.unwrap();
    assert_eq!(holders.len(), 1);
    let listing = reader.list_locks(&Pattern::all(), 9).await.unwrap();
    let shown = &listing.locks[0].holders[0].holder;
    assert_eq!(
        (shown.owner, shown.mode),
        (Some(guard.owner()), Mode::Shared)
    );
}

#[tokio::test]
async fn listing_shows_the_holder_of_each_permit() {
    let server = RedisServer::start();
    let (holder, other) = (client(&server), client(&server));
    let guards = [
        permit(&holder, "workers", 2).await,
        permit(&holder, "workers", 2).await,
    ];
    let waits = background::spawn(other.semaphore("workers", 2).acquire());
    queued(&server, "workers", 1).await;
    let listing = other.list_locks(&Pattern::all(), 9).await.unwrap();
    let mut owners: Vec<_> = listing.locks[0]
        .holders
        .iter()
        .map(|it| it.holder.owner)
        .collect();
    let mut expected = guards.each_ref().map(|guard| Some(guard.owner()));
    owners.sort_unstable();
    expected.sort_unstable();
    assert_eq!(owners, expected);
    for guard in guards {
        guard.release().await.unwrap();
    }
    waits.await.unwrap().unwrap().release().await.unwrap();
}
