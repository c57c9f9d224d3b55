use std::sync::{Arc, LazyLock};
use std::time::Duration;

use leasehold::ambient::{Ambient, SystemEntropy};
use leasehold::clock::{Clock, SystemClock, within};
use leasehold::{
    Attempt, Busy, Card, CardEdit, Claim, ClientInfo, Error, Fence, Grant, Held, Key, Life,
    MemberId, MemberSet, Mode, Owner, Permits, Presence, Release, Store, Ticket, Turn,
};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{LIMIT, RedisServer, Reply};

pub(crate) static CLIENT: LazyLock<Arc<ClientInfo>> = LazyLock::new(|| {
    let program = Some("the tests".to_owned());
    Arc::new(ClientInfo::of_this_process(&Ambient::default(), program))
});

pub(crate) fn member(server: &RedisServer) -> RedisMember {
    RedisMember::new(server.url()).unwrap()
}

/// A claim of a new owner that outlives any test.
pub(crate) fn claim(name: &str) -> Claim {
    claim_for(name, Duration::from_secs(60))
}

pub(crate) fn claim_for(name: &str, ttl: Duration) -> Claim {
    let wall = SystemClock.wall();
    Claim::new(
        key(name),
        Owner::at(CLIENT.id, wall, &SystemEntropy),
        ttl,
        wall,
        Arc::clone(&CLIENT),
    )
}

pub(crate) fn shared(name: &str) -> Claim {
    claim(name).with_mode(Mode::Shared)
}

/// A claim of a new owner on one of so many permits.
pub(crate) fn one_of(name: &str, count: u32) -> Claim {
    claim(name).with_mode(Mode::Permit(Permits::new(count).unwrap()))
}

pub(crate) fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

pub(crate) async fn granted(store: &dyn Store, claim: &Claim) -> Grant {
    match store.acquire(claim).await {
        Ok(Attempt::Granted(grant)) => grant,
        other => panic!("{:?} was not granted: {other:?}", claim.key),
    }
}

pub(crate) async fn busy(store: &dyn Store, claim: &Claim) -> Busy {
    match store.acquire(claim).await {
        Ok(Attempt::Busy(busy)) => busy,
        other => panic!("{:?} was not busy: {other:?}", claim.key),
    }
}

pub(crate) async fn refused(store: &dyn Store, claim: &Claim) -> Error {
    match store.acquire(claim).await {
        Err(error) => error,
        Ok(attempt) => panic!("{:?} was answered {attempt:?}", claim.key),
    }
}

pub(crate) async fn released(store: &dyn Store, claim: &Claim) {
    let answer = store.release(claim).await;
    assert_eq!(answer.unwrap(), Release::Released, "{:?}", claim.key);
}

/// Releases until the answer comes, as the quorum does.
pub(crate) async fn freed(store: &dyn Store, claim: &Claim) -> Release {
    eventually("the release is answered", async || {
        let limit = SystemClock.now() + Duration::from_secs(5);
        within(&SystemClock, limit, store.release(claim))
            .await?
            .ok()
    })
    .await
}

/// What writes a card of a new life for the set of this one member, over the one that stands.
pub(crate) fn card_edit(presence: &Presence, id: &str) -> CardEdit {
    let id = MemberId::new(id);
    let other = MemberId::new("other");
    CardEdit {
        expected: presence.card.as_ref().map(Card::mark),
        set: MemberSet::new([id], Duration::from_secs(60), Duration::from_millis(250)),
        generation: presence.card.as_ref().map_or(1, |card| card.generation),
        run: presence.run.clone(),
        durable: presence.durable,
        life: Life::random(&SystemEntropy),
        age: Some(Duration::ZERO),
        seen: vec![(other, Life::random(&SystemEntropy))],
    }
}

/// A fence that nobody draws for a minute, since they go by the clock.
pub(crate) fn next(grant: &Grant) -> Fence {
    Fence::new(grant.fence.get() + 60_000_000).expect("a fence")
}

pub(crate) fn held(claim: &Claim, grant: &Grant) -> Held {
    Held {
        claim: Arc::new(claim.clone()),
        fence: grant.fence,
    }
}

/// Tries again until `look` finds something.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = SystemClock.now() + LIMIT;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        let now = SystemClock.now();
        assert!(now < end, "{what}: not within {LIMIT:?}");
        SystemClock
            .sleep_until(now + Duration::from_millis(5))
            .await;
    }
}

pub(crate) fn value(server: &RedisServer, key: &str) -> Reply {
    server.command(&["GET", key])
}

/// How many connections of ours the server has.
pub(crate) fn connections(server: &RedisServer) -> usize {
    match server.command(&["CLIENT", "LIST"]) {
        Reply::Bulk(list) => list.matches(" name=leasehold ").count(),
        other => panic!("CLIENT LIST: {other:?}"),
    }
}

/// Bytes that the kernel received for the server and it has not read.
pub(crate) fn unread(port: u16) -> u64 {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let unread = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, _, state, queues) = (
            fields.next()?,
            fields.next()?,
            fields.next()?,
            fields.next()?,
        );
        let ours = local.ends_with(&format!(":{port:04X}")) && state == "01";
        let (_, received) = queues.split_once(':')?;
        ours.then(|| u64::from_str_radix(received, 16).ok())
            .flatten()
    });
    unread.sum()
}

/// A turn of a wait that begins now, and whose identity is that of `claim`'s owner.
pub(crate) fn queued(claim: &Claim) -> Turn {
    Turn::Queued(Ticket {
        since: claim.proposal,
        waiter: claim.owner,
    })
}

/// How often the server ran each command since its figures began.
pub(crate) fn commands(server: &RedisServer) -> Vec<(String, u64)> {
    let Reply::Bulk(stats) = server.command(&["INFO", "commandstats"]) else {
        panic!("INFO")
    };
    let lines = stats.lines().filter_map(|line| {
        let (name, figures) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let (calls, _) = figures.split_once(',')?;
        Some((name.to_owned(), calls.parse().ok()?))
    });
    lines.collect()
}
