//! A lease that goes over within its client.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::{
    Breach, Break, Client, Guard, Inspection as _, Key, LostReason, Quorum, background,
};
use leasehold_testkit::servers::{LIMIT, RedisServer, Reply};

use crate::trips::{at, queued};

/// Until the server has counted beyond `guard`, for those who may come after it.
async fn reserved(server: &RedisServer, guard: &Guard) {
    let deadline = SystemClock.now() + LIMIT;
    let counter = ["ZSCORE", "leasehold:fence:0:{line}:line", "f"];
    let own = Reply::Bulk(guard.fence().to_string());
    while server.command(&counter) == own {
        assert!(SystemClock.now() < deadline, "it does not count");
        tokio::task::yield_now().await;
    }
}

/// While the server stands still nobody can ask it anything. What the waiters were told of their places
/// counts for a second: what a slow machine does after that says nothing.
#[tokio::test]
async fn nothing_is_asked_before_the_next_one_goes_on() {
    let server = RedisServer::start();
    for _ in 0..ROUNDS {
        if goes_over_in_silence(&server).await {
            return;
        }
        queued(&server, 0).await;
    }
    panic!("none of {ROUNDS} times within a second");
}

const ROUNDS: usize = 10;
const PLACES_HOLD: Duration = Duration::from_secs(1);

/// `false` if it took too long to tell.
async fn goes_over_in_silence(server: &RedisServer) -> bool {
    let store = Arc::new(at(server.port(), "", ""));
    let locks = Client::new(Quorum::of_one(store.clone()));
    let first = locks.lock("line").acquire().await.unwrap();
    let began = SystemClock.now();
    let mut waiting = Vec::new();
    for place in 1..=4 {
        waiting.push(background::spawn(locks.lock("line").acquire()));
        queued(server, place).await;
    }
    first.release().await.unwrap();
    let mut waiting = waiting.into_iter();
    let mut guard = waiting.next().unwrap().await.unwrap().unwrap();
    reserved(server, &guard).await;
    // Answers come in order: behind these all who wait have heard theirs, and the client of its reserve.
    for _ in 0..2 {
        locks.waiters("line").await.unwrap();
    }
    server.freeze();
    for next in waiting {
        let (owner, fence) = (guard.owner(), guard.fence());
        let released = guard.release().await;
        if SystemClock.now().since(began) > PLACES_HOLD {
            server.thaw();
            return false;
        }
        released.unwrap();
        guard = next.await.unwrap().unwrap();
        assert!(guard.is_valid() && guard.fence() > fence);
        assert_eq!(guard.owner(), owner);
    }
    server.thaw();
    queued(server, 0).await;
    let key = Key::new("line").unwrap();
    let holders = store.holders(&key).await.unwrap();
    assert_eq!(holders[0].owner, Some(guard.owner()));
    let fence = guard.fence();
    guard.release().await.unwrap();
    let stranger = Client::new(Quorum::of_one(Arc::new(at(server.port(), "", ""))));
    let later = stranger.lock("line").try_acquire().await.unwrap();
    let later = later.expect("a free lock");
    assert!(
        later.fence() > fence,
        "also greater than those that the server was not told of"
    );
    later.release().await.unwrap();
    true
}

/// By the fence that the server shows once the lease was renewed.
#[tokio::test]
async fn an_operator_takes_a_lease_from_whoever_it_went_over_to() {
    let server = RedisServer::start();
    let client = || Client::new(Quorum::of_one(Arc::new(at(server.port(), "", ""))));
    let (locks, operator) = (client(), client());
    let lock = locks.lock("line").ttl(Duration::from_secs(3));
    for _ in 0..ROUNDS {
        let first = lock.acquire().await.unwrap();
        let mut waiting = Vec::new();
        for place in 1..=2 {
            waiting.push(background::spawn(lock.acquire()));
            queued(&server, place).await;
        }
        let (heir, holder) = (waiting.pop().unwrap(), waiting.pop().unwrap());
        first.release().await.unwrap();
        let holder = holder.await.unwrap().unwrap();
        let owner = holder.owner();
        holder.release().await.unwrap();
        let guard = heir.await.unwrap().unwrap();
        if guard.owner() != owner {
            continue;
        }
        let deadline = SystemClock.now() + LIMIT;
        let shown = loop {
            // Before its first renewal, the fence of the lease's first holder is shown.
            let shown = operator.holders("line").await.unwrap()[0].fence;
            if shown == Some(guard.fence()) {
                break guard.fence();
            }
            assert!(SystemClock.now() < deadline, "no renewal");
        };
        let how = Break::at_its_end();
        let broken = operator.break_lock("line", shown, how).await.unwrap();
        assert!(matches!(broken, Breach::Done(..)), "{broken:?}");
        assert_eq!(guard.lost().await, LostReason::Broken);
        return;
    }
    panic!("no lease went over in {ROUNDS} rounds");
}
