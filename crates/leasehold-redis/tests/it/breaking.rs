//! What breaking a lock leaves at the server, and how others see it.

use std::sync::Arc;
use std::time::Duration;

use leasehold::ambient::{Ambient, SystemEntropy};
use leasehold::background;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold::{
    Admin as _, Attempt, BreakRecord, Claim, Client, ClientInfo, Fence, Held, Inspection as _, Key,
    LostReason, Member, Owner, Pattern, Renewal, Store, Ticket, Turn,
};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{CLIENT, busy, claim, claim_for, granted, key, member, released, shared};

const FENCES: &str = "leasehold:fence:0:{deploy}:deploy";

fn record(claim: &Claim, fence: Fence) -> BreakRecord {
    let by = ClientInfo::of_this_process(&Ambient::default(), None);
    BreakRecord::new(claim.owner, fence, by, SystemClock.wall())
}

async fn renewal(store: &RedisMember, claim: &Claim, fence: Fence) -> Renewal {
    let claim = Arc::new(claim.clone());
    let mut answers = store.renew(&[Held { claim, fence }]).await;
    answers.pop().unwrap()
}

async fn renewed(store: &RedisMember, claim: &Claim, fence: Fence) {
    let answer = renewal(store, claim, fence).await;
    assert!(matches!(answer, Renewal::Renewed), "{answer:?}");
}

async fn shown_fence(store: &RedisMember, key: &Key) -> Option<Fence> {
    store.holders(key).await.unwrap()[0].fence
}

fn count(server: &RedisServer, min: &str, max: &str) -> i64 {
    match server.command(&["ZCOUNT", FENCES, min, max]) {
        Reply::Integer(count) => count,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_fence_is_shown_from_the_grant_on_and_the_last_holders_alone_is_kept() {
    let server = RedisServer::start();
    let (store, deploy) = (member(&server), key("deploy"));
    for _ in 0..20 {
        let holder = claim("deploy");
        let fence = granted(&store, &holder).await.fence;
        assert_eq!(shown_fence(&store, &deploy).await, Some(fence));
        // Refused attempts move the counter, and not what is shown.
        busy(&store, &claim("deploy")).await;
        assert_eq!(shown_fence(&store, &deploy).await, Some(fence));
        renewed(&store, &holder, fence).await;
        renewed(&store, &holder, fence).await;
        assert_eq!(shown_fence(&store, &deploy).await, Some(fence));
        released(&store, &holder).await;
    }
    assert_eq!(
        count(&server, "-inf", "+inf"),
        2,
        "the counter and one note"
    );
}

#[tokio::test]
async fn fence_above_the_clock_is_shown_from_the_grant() {
    let server = RedisServer::start();
    let (store, deploy) = (member(&server), key("deploy"));
    let ahead = SystemClock.wall().as_micros() + 3_600_000_000;
    server.command(&["ZADD", FENCES, &ahead.to_string(), "f"]);
    // The first attempt finds the counter ahead of its clock, the second one knows that it is.
    for _ in 0..2 {
        let holder = claim("deploy");
        let fence = granted(&store, &holder).await.fence;
        assert!(fence.get() > ahead);
        busy(&store, &claim("deploy")).await;
        assert_eq!(shown_fence(&store, &deploy).await, Some(fence));
        released(&store, &holder).await;
    }
    let holder = claim("deploy");
    let waiter = Owner::random(CLIENT.id, &SystemEntropy);
    let since = SystemClock.wall();
    let turn = Turn::Queued(Ticket { since, waiter });
    let attempt = store.acquire_in_turn(&holder, &turn).await.unwrap();
    let Attempt::Granted(grant) = attempt else {
        panic!("{attempt:?}")
    };
    assert_eq!(shown_fence(&store, &deploy).await, Some(grant.fence));
}

#[tokio::test]
async fn a_fence_that_was_sealed_elsewhere_only_does_not_cost_the_counter() {
    let server = RedisServer::start();
    let store = member(&server);
    let holder = claim("deploy");
    let drawn = granted(&store, &holder).await.fence;
    let agreed = Fence::new(drawn.get() + 1_000_000_000).unwrap();
    renewed(&store, &holder, agreed).await;
    released(&store, &holder).await;
    let next = granted(&store, &claim("deploy")).await.fence;
    assert!(next > agreed, "{next} after {agreed}");
}

#[tokio::test]
async fn a_damaged_counter_hides_the_fence_and_stops_no_renewal() {
    let server = RedisServer::start();
    let (store, holder) = (member(&server), claim("deploy"));
    let fence = granted(&store, &holder).await.fence;
    server.command(&["SET", FENCES, "text"]);
    renewed(&store, &holder, fence).await;
    assert_eq!(shown_fence(&store, &holder.key).await, None);
}

#[tokio::test]
async fn what_is_left_of_a_broken_lock_keeps_others_out_until_it_would_have_ended() {
    let server = RedisServer::start();
    let (store, holder) = (member(&server), claim("deploy"));
    let fence = granted(&store, &holder).await.fence;
    let record = record(&holder, fence);
    let broken = store.break_lease(&holder.key, &record).await.unwrap();
    let left = broken.shut_for.unwrap();
    assert!(left > Duration::from_secs(30) && left <= Duration::from_secs(60));
    let value = format!("leasehold:broken:{}", holder.owner);
    assert_eq!(server.command(&["GET", "deploy"]), Reply::Bulk(value));
    let theirs = server.command(&["SET", "deploy", "theirs", "NX", "PX", "100"]);
    assert_eq!(theirs, Reply::Nil);
    let refused = busy(&store, &claim("deploy")).await;
    assert!(refused.holder.is_none() && !refused.silent, "{refused:?}");
    let rest = server.command(&["PTTL", "leasehold:broken:{deploy}:deploy"]);
    let week = 7 * 24 * 60 * 60 * 1000;
    assert!(
        matches!(rest, Reply::Integer(rest) if rest > week - 60_000 && rest <= week),
        "{rest:?}"
    );
    let answer = renewal(&store, &holder, fence).await;
    assert!(matches!(answer, Renewal::Lost(LostReason::Broken)));
    assert_eq!(
        store.list("", 9).await.unwrap(),
        [key("deploy")],
        "it is shut"
    );
}

#[tokio::test]
async fn a_lease_is_told_as_broken_where_it_was_also_without_the_note_and_no_other_is() {
    let server = RedisServer::start();
    let store = member(&server);
    let (before, holder) = (claim("deploy"), claim("deploy"));
    let earlier = granted(&store, &before).await.fence;
    released(&store, &before).await;
    let fence = granted(&store, &holder).await.fence;
    let record = record(&holder, fence);
    store.break_lease(&holder.key, &record).await.unwrap();
    let answer = renewal(&store, &before, earlier).await;
    assert!(
        matches!(answer, Renewal::Lost(LostReason::Taken)),
        "{answer:?}"
    );
    server.command(&["SET", FENCES, "text"]);
    let answer = renewal(&store, &holder, fence).await;
    assert!(
        matches!(answer, Renewal::Lost(LostReason::Broken)),
        "{answer:?}"
    );
}

#[tokio::test]
async fn what_is_noted_of_a_lease_that_never_stood_here_goes_with_time() {
    let server = RedisServer::start();
    let (store, elsewhere) = (member(&server), claim("deploy"));
    let record = record(&elsewhere, Fence::new(7).unwrap());
    let broken = store.break_lease(&elsewhere.key, &record).await.unwrap();
    assert!(!broken.stood);
    let rest = server.command(&["PTTL", FENCES]);
    let week = 7 * 24 * 60 * 60 * 1000;
    assert!(
        matches!(rest, Reply::Integer(rest) if rest > week - 60_000 && rest <= week),
        "{rest:?}"
    );
}

#[tokio::test]
async fn of_many_broken_leases_the_last_sixteen_are_remembered() {
    let server = RedisServer::start();
    let store = member(&server);
    let (mut owners, many) = (Vec::new(), 20);
    for _ in 0..many {
        let holder = claim("deploy");
        let fence = granted(&store, &holder).await.fence;
        let mut record = record(&holder, fence);
        record.at_once = true;
        let broken = store.break_lease(&holder.key, &record).await.unwrap();
        assert!(broken.stood && broken.shut_for.is_none());
        owners.push((holder, fence));
    }
    assert_eq!(count(&server, "-inf", "(0"), 16);
    assert_eq!(count(&server, "(0", "+inf"), 1, "the counter");
    let (last, fence) = owners.last().unwrap();
    let answer = renewal(&store, last, *fence).await;
    assert!(matches!(answer, Renewal::Lost(LostReason::Broken)));
    let (first, fence) = &owners[0];
    let answer = renewal(&store, first, *fence).await;
    assert!(matches!(answer, Renewal::Lost(LostReason::Gone)));
}

/// How often the server was asked for `command`, and how many microseconds one took on average.
fn calls(server: &RedisServer, command: &str) -> Option<(u64, f64)> {
    let Reply::Bulk(text) = server.command(&["INFO", "commandstats"]) else {
        panic!("no statistics")
    };
    let start = format!("cmdstat_{command}:");
    let line = text.lines().find_map(|line| line.strip_prefix(&start))?;
    let field = |name: &str| {
        let mut fields = line.split(',');
        fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
    };
    Some((
        field("calls")?.parse().unwrap(),
        field("usec_per_call")?.parse().unwrap(),
    ))
}

/// The longest command of a survey, as the server tells, in microseconds.
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
async fn a_survey_of_a_hundred_thousand_locks_is_many_short_commands() {
    const LOCKS: usize = 100_000;
    let server = RedisServer::start();
    for part in (0..LOCKS).collect::<Vec<_>>().chunks(1000) {
        let owner = || Owner::random(CLIENT.id, &SystemEntropy).to_string();
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
    let store = member(&server);
    let pattern = Pattern::new("lock/0*7").unwrap();
    let survey = store.survey(&pattern, 1000).await.unwrap();
    server.command(&["CONFIG", "SET", "slowlog-log-slower-than", "-1"]);
    assert_eq!(survey.locks.len(), 1000);
    assert!(survey.more);
    assert_eq!(survey.locks[0].key.as_str(), "lock/000007");
    assert_eq!(survey.locks[999].key.as_str(), "lock/009997");

    assert_eq!(calls(&server, "keys"), None, "KEYS looks at all at once");
    let (scans, each) = calls(&server, "scan").unwrap();
    // Each looks at so few keys that the server is soon there for others.
    assert!(scans >= (LOCKS / 1024) as u64, "{scans} steps");
    let (looks, _) = calls(&server, "mget").unwrap();
    assert!(
        looks < (LOCKS / 10) as u64,
        "{looks} looks, and not one per lock"
    );
    let figure = format!(
        "{LOCKS} locks: {scans} SCAN of {each:.0} µs on average; the longest command took {} µs",
        longest(&server)
    );
    // What DESIGN.md states.
    eprintln!("{figure}");
}

#[tokio::test]
async fn who_waits_gets_a_broken_lock_as_soon_as_it_is_open() {
    let server = RedisServer::start();
    let store = member(&server);
    let holder = claim_for("deploy", Duration::from_secs(3));
    let fence = granted(&store, &holder).await.fence;
    let waiter = Client::new(member(&server));
    let waits = background::spawn(async move { waiter.lock("deploy").acquire().await });
    crate::support::eventually("it waits", async || {
        let waiters = store.waiters(&holder.key).await.unwrap();
        (!waiters.is_empty()).then_some(())
    })
    .await;
    let record = record(&holder, fence);
    let broken = store.break_lease(&holder.key, &record).await.unwrap();
    let shut_for = broken.shut_for.unwrap();
    let began = SystemClock.now();
    let guard = waits.await.unwrap().unwrap();
    let shut = SystemClock.now().since(began);
    let late = Duration::from_secs(1);
    assert!(
        shut + Duration::from_millis(100) >= shut_for && shut <= shut_for + late,
        "granted after {shut:?}, and shut for {shut_for:?}"
    );
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_record_that_is_none_hides_the_break_and_no_more() {
    let server = RedisServer::start();
    let (store, deploy) = (member(&server), key("deploy"));
    server.command(&["SET", "leasehold:broken:{deploy}:deploy", "theirs"]);
    assert_eq!(store.last_break(&deploy).await.unwrap(), None);
    let holder = claim("deploy");
    let fence = granted(&store, &holder).await.fence;
    let record = record(&holder, fence);
    store.break_lease(&deploy, &record).await.unwrap();
    assert_eq!(store.last_break(&deploy).await.unwrap(), Some(record));
}

#[tokio::test]
async fn a_survey_finds_locks_behind_a_prefix_by_their_names() {
    let server = RedisServer::start();
    let store = RedisMember::new(format!("{}?prefix=app:", server.url())).unwrap();
    let holder = claim("deploy");
    let fence = granted(&store, &holder).await.fence;
    renewed(&store, &holder, fence).await;
    granted(&member(&server), &claim("other")).await;
    // A lock that is held together, by nobody.
    server.command(&["SET", "app:doc", "leasehold:shared", "PX", "60000"]);
    let survey = store.survey(&Pattern::all(), 9).await.unwrap();
    let [lock] = survey.locks.as_slice() else {
        panic!("one lock: {survey:?}")
    };
    assert_eq!(lock.key, holder.key);
    let shown = &lock.holders[0].holder;
    assert_eq!(
        (shown.owner, shown.fence),
        (Some(holder.owner), Some(fence))
    );
    assert!(shown.remaining.is_some(), "{shown:?}");
}

#[tokio::test]
async fn a_reader_is_shown_also_behind_many_that_crashed() {
    let server = RedisServer::start();
    let (store, reader) = (member(&server), shared("doc"));
    granted(&store, &reader).await;
    let crashed = (0..1100).flat_map(|number| {
        let owner = Owner::random(CLIENT.id, &SystemEntropy).to_string();
        [(1_700_000_000_000_u64 + number).to_string(), owner]
    });
    let crashed: Vec<String> = crashed.collect();
    let mut command = vec!["ZADD", "leasehold:readers:{doc}:doc"];
    command.extend(crashed.iter().map(String::as_str));
    assert_eq!(server.command(&command), Reply::Integer(1100));
    let holders = store.holders(&reader.key).await.unwrap();
    assert_eq!(holders.len(), 1);
    let survey = store.survey(&Pattern::all(), 9).await.unwrap();
    let shown = survey
        .locks
        .first()
        .map(|lock| lock.holders[0].holder.owner);
    assert_eq!(shown, Some(Some(reader.owner)), "{survey:?}");
}
