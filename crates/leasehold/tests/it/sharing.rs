//! Shares of one guard: explicit reentrancy. And a guard with the value it protects.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;
use leasehold::{Client, Guard, Guarded, LostReason, ReleaseOutcome, blocking};
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
async fn last_share_frees_the_lock_once() {
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
        let (share, nested) = (guard.share(), guard.share().share());
        let mut shares = [Some(guard), Some(share), Some(nested)];
        for (step, (index, drops)) in ends.into_iter().enumerate() {
            assert!(!is_free(&other, "x").await);
            let ending = shares[index].take().expect("one that is still there");
            if drops {
                drop(ending);
                fixture.settle().await;
                continue;
            }
            let expected = [
                ReleaseOutcome::StillShared,
                ReleaseOutcome::StillShared,
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
async fn concurrent_shares_free_the_lock_once() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    let ending: Vec<_> = (0..50)
        .map(|_| leasehold::store::background::spawn(guard.share().release()))
        .collect();
    let mut ended = vec![guard.release().await.unwrap()];
    for task in ending {
        ended.push(task.await.unwrap().unwrap());
    }
    let released = ended
        .iter()
        .filter(|it| **it == ReleaseOutcome::Released)
        .count();
    let shared = ended
        .iter()
        .filter(|it| **it == ReleaseOutcome::StillShared)
        .count();
    assert_eq!((released, shared), (1, 50));
    assert_eq!(releases(&fixture), 1);
}

#[tokio::test(start_paused = true)]
async fn share_lives_and_ends_with_its_guard() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    let share = guard.share();
    assert_eq!(
        (guard.fence(), guard.owner()),
        (share.fence(), share.owner())
    );
    guard.release().await.unwrap();
    fixture.pass(TTL * 3).await;
    assert!(share.is_valid(), "renewed without the first one");
    let second = share.share();
    fixture.store.set(Fault::Unreachable);
    assert_eq!(share.lost().await, LostReason::Unreachable);
    assert!(!second.is_valid());
    assert!(!second.share().is_valid(), "of what is lost");
}

#[tokio::test(start_paused = true)]
async fn body_on_a_share_frees_nothing() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    let guard = hold(&fixture.client).await;
    guard.share().run(async {}).await.unwrap();
    assert!(guard.is_valid() && !is_free(&other, "x").await);
    guard.run(async {}).await.unwrap();
    assert!(is_free(&other, "x").await);
}

/// Gives its share back when it is dropped, and notes whether the lock was still held by another one.
struct Flushes(Option<Guard>, Rc<Cell<bool>>);

impl Drop for Flushes {
    fn drop(&mut self) {
        let share = self.0.take().expect("it is dropped once");
        let ended = share.release().now_or_never();
        self.1
            .set(matches!(ended, Some(Ok(ReleaseOutcome::StillShared))));
    }
}

#[tokio::test(start_paused = true)]
async fn guarded_value_needs_a_held_lock() {
    let fixture = Fixture::new();
    let mut numbers = Guarded::new(hold(&fixture.client).await, vec![1]);
    numbers.ensure(Duration::from_secs(20)).unwrap().push(2);
    let error = numbers.ensure(Duration::from_secs(28)).unwrap_err();
    assert!(error.is_lost(), "{error}");
    fixture.store.set(Fault::Unreachable);
    numbers.guard().lost().await;
    let error = numbers.ensure(Duration::ZERO).unwrap_err();
    assert!(error.is_lost(), "{error}");
    let (guard, numbers) = numbers.into_inner();
    assert_eq!(numbers, [1, 2]);
    assert!(!guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn guarded_value_drops_before_the_release() {
    for releases_it in [true, false] {
        let fixture = Fixture::new();
        let guard = hold(&fixture.client).await;
        let held = Rc::new(Cell::new(false));
        let value = Flushes(Some(guard.share()), Rc::clone(&held));
        let guarded = Guarded::new(guard, value);
        if releases_it {
            assert_eq!(guarded.release().await.unwrap(), ReleaseOutcome::Released);
        } else {
            drop(guarded);
        }
        assert!(held.get());
        fixture.settle().await;
        assert!(is_free(&fixture.other_client(), "x").await);
    }
}

#[test]
fn blocking_guarded_and_downgrade_behave_alike() {
    let locks = blocking::Client::new(leasehold::MemoryStore::new());
    let guard = locks.lock("x").try_acquire().unwrap().unwrap();
    let mut text = blocking::Guarded::new(guard, String::new());
    text.guard().downgrade().unwrap();
    let reader = locks.lock("x").mode(leasehold::Mode::Shared);
    text.ensure(Duration::from_secs(1)).unwrap().push('a');
    let joined = reader.try_acquire().unwrap().expect("it is shared");
    assert_eq!(text.guard().mode(), leasehold::Mode::Shared);
    let (guard, text) = text.into_inner();
    assert_eq!(text, "a");
    let text = blocking::Guarded::new(guard, text);
    assert_eq!(text.release().unwrap(), ReleaseOutcome::Released);
    assert_eq!(joined.release().unwrap(), ReleaseOutcome::Released);
}

#[test]
fn without_async_a_client_sees_the_same() {
    let store = leasehold::MemoryStore::new();
    let client = Client::new(store.clone());
    let locks = blocking::Client::new(store);
    let guard = locks.lock("stock").acquire().unwrap();
    assert_eq!(locks.list("sto", 9).unwrap(), [guard.key().clone()]);
    assert_eq!(locks.holders("stock").unwrap().len(), 1);
    assert_eq!(locks.guarantees(), client.guarantees());
    assert_eq!(locks.to_string(), client.to_string());
    guard.release().unwrap();
}
