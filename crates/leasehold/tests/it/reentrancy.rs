//! Reentrancy: several guards of one hold.

use leasehold::look::Pattern;
use leasehold::{Client, Guard, LostReason, ReleaseOutcome, blocking};
use leasehold_testkit::{Fault, StoreCall};

use crate::fixture::{Fixture, TTL, is_free};

async fn hold(client: &Client) -> Guard {
    let taken = client.lock("x").try_acquire().await.expect("an answer");
    taken.expect("a free lock")
}

fn releases(fixture: &Fixture) -> usize {
    fixture.count(|call| matches!(call, StoreCall::Release(_)))
}

#[tokio::test(start_paused = true)]
async fn last_release_frees_the_lock_once() {
    let fixture = Fixture::new();
    let other = crate::fixture::client(fixture.store.clone(), &fixture.env);
    // The order of the ends, and which of them are drops.
    for ends in [
        [(0, true), (1, false), (2, false)],
        [(2, false), (0, true), (1, true)],
        [(1, true), (2, true), (0, false)],
        [(2, true), (1, false), (0, true)],
    ] {
        let before = releases(&fixture);
        let guard = hold(&fixture.client).await;
        let (inner, nested) = (guard.reenter(), guard.reenter().reenter());
        let mut guards = [Some(guard), Some(inner), Some(nested)];
        for (step, (index, drops)) in ends.into_iter().enumerate() {
            assert!(!is_free(&other, "x").await);
            let ending = guards[index].take().expect("one that is still there");
            if drops {
                drop(ending);
                fixture.settle().await;
                continue;
            }
            let expected = [
                ReleaseOutcome::StillHeld,
                ReleaseOutcome::StillHeld,
                ReleaseOutcome::Released,
            ][step];
            assert_eq!(ending.release().await.unwrap(), expected);
        }
        assert_eq!(releases(&fixture), before + 1);
        assert!(is_free(&other, "x").await);
        fixture.settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_releases_free_the_lock_once() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    let ending: Vec<_> = (0..50)
        .map(|_| leasehold::store::background::spawn(guard.reenter().release()))
        .collect();
    let mut ended = vec![guard.release().await.unwrap()];
    for task in ending {
        ended.push(task.await.unwrap().unwrap());
    }
    let released = ended
        .iter()
        .filter(|it| **it == ReleaseOutcome::Released)
        .count();
    let still_held = ended
        .iter()
        .filter(|it| **it == ReleaseOutcome::StillHeld)
        .count();
    assert_eq!((released, still_held), (1, 50));
    assert_eq!(releases(&fixture), 1);
}

#[tokio::test(start_paused = true)]
async fn reentered_guards_live_and_end_together() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    let inner = guard.reenter();
    assert_eq!(
        (guard.fence(), guard.owner()),
        (inner.fence(), inner.owner())
    );
    guard.release().await.unwrap();
    fixture.pass(TTL * 3).await;
    assert!(inner.is_valid(), "renewed without the first one");
    let second = inner.reenter();
    fixture.store.set(Fault::Unreachable);
    assert_eq!(inner.lost().await, LostReason::Unreachable);
    assert!(!second.is_valid());
    assert!(!second.reenter().is_valid(), "of what is lost");
}

#[tokio::test(start_paused = true)]
async fn inner_body_frees_nothing() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    let guard = hold(&fixture.client).await;
    guard.reenter().run(async |_| ()).await.unwrap();
    assert!(guard.is_valid() && !is_free(&other, "x").await);
    guard.run(async |_| ()).await.unwrap();
    assert!(is_free(&other, "x").await);
}

#[test]
fn blocking_downgrade_behaves_alike() {
    let locks = blocking::Client::new(leasehold::memory::MemoryStore::new());
    let guard = locks.lock("x").try_acquire().unwrap().unwrap();
    guard.downgrade().unwrap();
    let reader = locks.lock("x").mode(leasehold::Mode::Shared);
    let joined = reader.try_acquire().unwrap().expect("it is shared");
    assert_eq!(guard.mode(), leasehold::Mode::Shared);
    assert_eq!(guard.release().unwrap(), ReleaseOutcome::Released);
    assert_eq!(joined.release().unwrap(), ReleaseOutcome::Released);
}

#[test]
fn without_async_a_client_sees_the_same() {
    let store = leasehold::memory::MemoryStore::new();
    let client = Client::new(store.clone());
    let locks = blocking::Client::new(store);
    let guard = locks.lock("stock").acquire().unwrap();
    let listing = locks.list_locks(&Pattern::all(), 9).unwrap();
    assert_eq!(listing.locks[0].key, *guard.key());
    assert_eq!(locks.holders("stock").unwrap().len(), 1);
    assert_eq!(locks.guarantees(), client.guarantees());
    assert_eq!(locks.to_string(), client.to_string());
    guard.release().unwrap();
}
