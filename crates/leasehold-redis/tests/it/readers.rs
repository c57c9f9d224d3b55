use std::time::Duration;

use leasehold::{Held, Inspection as _, LostReason, Member, Mode, Release, Renewal, Seal, Store};
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{
    busy, claim, claim_for, eventually, granted, held, key, member, next, one_of, released, shared,
    value,
};

#[tokio::test]
async fn readers_share_and_keep_every_writer_out() {
    let server = RedisServer::start();
    let store = member(&server);
    let (one, two, writer) = (shared("doc"), shared("doc"), claim("doc"));
    let first = granted(&store, &one).await.fence;
    let second = granted(&store, &two).await.fence;
    assert!(second > first);
    assert!(granted(&store, &one).await.fence > second, "a resend");
    assert_eq!(busy(&store, &writer).await.holder, None);
    let foreign = server.command(&["SET", "doc", "token", "NX", "PX", "1000"]);
    assert_eq!(foreign, Reply::Nil);
    assert_eq!(store.holders(&key("doc")).await.unwrap().len(), 2);
    released(&store, &one).await;
    assert_eq!(store.release(&one).await.unwrap(), Release::WasLost);
    busy(&store, &writer).await;
    released(&store, &two).await;
    assert_eq!(value(&server, "doc"), Reply::Nil);
    assert!(granted(&store, &writer).await.fence > second);
    let answer = busy(&store, &shared("doc")).await;
    assert_eq!(answer.holder, Some(writer.owner));
}

#[tokio::test]
async fn a_reader_is_sealed_and_renewed_as_long_as_it_stands() {
    let server = RedisServer::start();
    let store = member(&server);
    let (mine, other) = (shared("doc"), shared("doc"));
    let grant = granted(&store, &mine).await;
    assert_eq!(
        store.seal(&mine, next(&grant)).await.unwrap().answer,
        Seal::Sealed
    );
    assert_eq!(
        store.seal(&other, grant.fence).await.unwrap().answer,
        Seal::NotHeld
    );
    let leases = [held(&mine, &grant), held(&other, &grant)];
    let answers = store.renew(&leases).await;
    // The key is another reader's for the one that is not among them.
    assert!(
        matches!(
            answers[..],
            [Renewal::Renewed, Renewal::Lost(LostReason::Taken)]
        ),
        "{answers:?}"
    );
}

#[tokio::test]
async fn a_reader_that_died_blocks_no_longer_than_its_own_ttl() {
    let server = RedisServer::start();
    let store = member(&server);
    let long = shared("doc");
    granted(&store, &long).await;
    let dies = claim_for("doc", Duration::from_millis(300)).with_mode(Mode::Shared);
    granted(&store, &dies).await;
    released(&store, &long).await;
    let before = leasehold::clock::Clock::now(&leasehold::clock::SystemClock);
    let writer = claim("doc");
    eventually("the writer gets in", async || {
        let attempt = store.acquire(&writer).await.unwrap();
        matches!(attempt, leasehold::Attempt::Granted(_)).then_some(())
    })
    .await;
    let waited = leasehold::clock::Clock::now(&leasehold::clock::SystemClock).since(before);
    assert!(waited < Duration::from_secs(30), "{waited:?}");
    assert_eq!(store.release(&dies).await.unwrap(), Release::WasLost);
    assert_eq!(value(&server, "doc"), Reply::Bulk(writer.owner.to_string()));
}

#[tokio::test]
async fn the_longest_reader_keeps_writers_out_though_shorter_ones_come_and_go() {
    let server = RedisServer::start();
    let store = member(&server);
    let long = shared("doc");
    granted(&store, &long).await;
    let short = claim_for("doc", Duration::from_millis(100)).with_mode(Mode::Shared);
    let lease = held(&short, &granted(&store, &short).await);
    store.renew(&[lease]).await;
    let left = || match server.command(&["PTTL", "doc"]) {
        Reply::Integer(left) => left,
        other => panic!("{other:?}"),
    };
    assert!(left() > 30_000);
    store.release(&short).await.unwrap();
    assert!(left() > 30_000);
}

/// The sentinel was deleted by hand, a writer came and went, and new readers set it up again: the
/// reader of before must not come back to life among them.
#[tokio::test]
async fn a_reader_does_not_rise_again_after_a_writer() {
    let server = RedisServer::start();
    let store = member(&server);
    let old = shared("doc");
    let lease = held(&old, &granted(&store, &old).await);
    server.command(&["DEL", "doc"]);
    let answers = store.renew(std::slice::from_ref(&lease)).await;
    assert!(
        matches!(answers[..], [Renewal::Lost(LostReason::Gone)]),
        "{answers:?}"
    );
    let writer = claim("doc");
    granted(&store, &writer).await;
    let answers = store.renew(std::slice::from_ref(&lease)).await;
    assert!(
        matches!(answers[..], [Renewal::Lost(LostReason::Taken)]),
        "{answers:?}"
    );
    released(&store, &writer).await;
    let young = shared("doc");
    granted(&store, &young).await;
    let answers = store.renew(std::slice::from_ref(&lease)).await;
    assert!(matches!(answers[..], [Renewal::Lost(_)]), "{answers:?}");
    assert_eq!(store.release(&old).await.unwrap(), Release::WasLost);
    assert_eq!(
        value(&server, "doc"),
        Reply::Bulk("leasehold:shared".into())
    );
    released(&store, &young).await;
}

/// When this record ends, and when the last of the leases does, in milliseconds of the server's clock.
fn ends(server: &RedisServer, name: &str) -> (i64, i64, i64) {
    let readers = format!("leasehold:readers:{{{name}}}:{name}");
    let expires = |record: &str| match server.command(&["PEXPIRETIME", record]) {
        Reply::Integer(at) => at,
        other => panic!("{other:?}"),
    };
    let last = server.command(&["ZRANGE", &readers, "-1", "-1", "WITHSCORES"]);
    let Reply::Array(last) = last else {
        panic!("{last:?}")
    };
    let last = match last.get(1) {
        Some(Reply::Bulk(score)) => score.parse().unwrap(),
        other => panic!("{other:?}"),
    };
    (expires(name), expires(&readers), last)
}

/// Whatever readers do, none of them outlives the sentinel, none that comes or renews shortens it, and so
/// nobody who knows nothing of them gets in.
#[tokio::test]
async fn the_sentinel_ends_with_the_last_lease_whatever_they_do() {
    let server = RedisServer::start();
    let store = member(&server);
    for mode in [Mode::Shared, one_of("x", 5).mode] {
        for seed in 1..=4_u64 {
            let name = format!("doc{seed} {mode}");
            let mut numbers = Numbers(seed);
            let mut here: Vec<Held> = Vec::new();
            let mut before = 0;
            for _ in 0..60 {
                let ttl = Duration::from_secs(20 + numbers.below(40));
                let which = numbers.below(5) as usize;
                let mut leaves = false;
                match (numbers.below(6), here.get(which).cloned()) {
                    (0, Some(lease)) => {
                        here.remove(which);
                        leaves = true;
                        released(&store, &lease.claim).await;
                    }
                    (1, Some(lease)) => drop(granted(&store, &with_ttl(&lease, ttl).claim).await),
                    (2 | 3, Some(lease)) => {
                        let answers = store.renew(&[with_ttl(&lease, ttl)]).await;
                        assert!(matches!(answers[..], [Renewal::Renewed]), "{answers:?}");
                    }
                    _ if here.len() < 5 => {
                        let claim = claim_for(&name, ttl).with_mode(mode);
                        here.push(held(&claim, &granted(&store, &claim).await));
                    }
                    _ => {}
                }
                if here.is_empty() {
                    assert_eq!(value(&server, &name), Reply::Nil);
                    before = 0;
                    continue;
                }
                let (sentinel, records, last) = ends(&server, &name);
                assert_eq!((sentinel, records), (last, last), "seed {seed}");
                assert!(leaves || sentinel >= before, "seed {seed}");
                before = sentinel;
                let foreign = server.command(&["SET", &name, "token", "NX", "PX", "1000"]);
                assert_eq!(foreign, Reply::Nil, "seed {seed}");
            }
            for lease in here {
                released(&store, &lease.claim).await;
            }
        }
    }
}

fn with_ttl(lease: &Held, ttl: Duration) -> Held {
    let mut claim = (*lease.claim).clone();
    claim.ttl = ttl;
    Held {
        claim: claim.into(),
        fence: lease.fence,
    }
}

/// Numbers that follow from a seed (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[tokio::test]
async fn every_renewal_of_a_reader_sets_both_ends_again() {
    let server = RedisServer::start();
    let store = member(&server);
    let mine = shared("doc");
    let lease = held(&mine, &granted(&store, &mine).await);
    let readers = "leasehold:readers:{doc}:doc";
    for record in ["doc", readers] {
        for damage in [&["PEXPIRE", record, "5000"][..], &["PERSIST", record]] {
            server.command(damage);
            let answers = store.renew(std::slice::from_ref(&lease)).await;
            assert!(matches!(answers[..], [Renewal::Renewed]), "{answers:?}");
            let (sentinel, records, last) = ends(&server, "doc");
            assert_eq!((sentinel, records), (last, last), "{damage:?}");
        }
    }
}
