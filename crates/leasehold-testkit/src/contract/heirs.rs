use futures_util::FutureExt as _;
use futures_util::future::{join, join_all};
use leasehold::{Fence, Lock, Owner};

use super::crowd::Crowd;
use super::scene::{LONG, Scene, granted, granted_in_time, released};

/// What is asked for may come late on a slow machine: then the lock is given back, and not left.
const ROUNDS: usize = 20;

pub(crate) async fn f5_what_is_left_has_one_holder_after_the_other(scene: &Scene) {
    const WAITERS: usize = 4;
    let Some(crowd) = Crowd::in_turn(scene, 1).filter(|crowd| !crowd.store.keeps_owner()) else {
        return;
    };
    for _ in 0..ROUNDS {
        let key = scene.key();
        let first = crowd.lock(0, &key).acquire().await.expect("the lock");
        let waiters = (0..WAITERS).map(|_| have(crowd.lock(0, &key)));
        let begin = async {
            crowd.until_waiting(&key, WAITERS).await;
            first.release().await.expect("a release");
        };
        let (had, ()) = join(join_all(waiters), begin).await;
        let fences: Vec<Fence> = had.iter().map(|(_, fence)| *fence).collect();
        let owners: Vec<Owner> = had.iter().map(|(owner, _)| *owner).collect();
        assert!(
            fences.is_sorted_by(|one, next| one < next),
            "who waited longer was before: {had:?}"
        );
        let stranger = scene.claim(&key, LONG);
        let (greatest, next) = (fences.last(), granted(&crowd.store, &stranger).await);
        assert!(greatest.is_some_and(|greatest| *greatest < next), "{next}");
        released(&crowd.store, &stranger).await;
        if owners.windows(2).any(|two| two[0] == two[1]) {
            return;
        }
    }
    panic!("no lease was left to the next in {ROUNDS} rounds");
}

async fn have(lock: Lock) -> (Owner, Fence) {
    let guard = lock.acquire().await.expect("the lock");
    let had = (guard.owner(), guard.fence());
    guard.release().await.expect("a release");
    had
}

pub(crate) async fn f5_what_is_left_to_one_that_stops_waiting_is_freed(scene: &Scene) {
    let Some(crowd) = Crowd::in_turn(scene, 1) else {
        return;
    };
    for _ in 0..ROUNDS {
        let key = scene.key();
        let first = crowd.lock(0, &key).acquire().await.expect("the lock");
        let mut waits = Vec::new();
        for number in 1..=2 {
            let mut wait = Box::pin(crowd.lock(0, &key).acquire());
            // From now on it goes on by itself.
            assert!((&mut wait).now_or_never().is_none(), "somebody holds it");
            crowd.until_waiting(&key, number).await;
            waits.push(wait);
        }
        let (heir, holder) = (waits.pop(), waits.pop());
        first.release().await.expect("a release");
        let guard = holder.expect("two").await.expect("its turn");
        let (ended, ()) = join(guard.release(), async { drop(heir) }).await;
        ended.expect("a release");
        let (claim, _) = granted_in_time(scene, &crowd.store, &key).await;
        released(&crowd.store, &claim).await;
        crowd.until_waiting(&key, 0).await;
    }
}
