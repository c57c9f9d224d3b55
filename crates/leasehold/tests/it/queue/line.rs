//! A line of waiters, and a holder that is freed by hand.

use std::time::Duration;

use leasehold::{
    Attempt, Claim, Client, Departure, Error, Guard, Inspection as _, Key, Member, Release, Store,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::scene::Scene;

/// Waiters of one lock, of which each says when it is granted, holds for 10 ms, and frees it.
pub(super) struct Line {
    granted: mpsc::UnboundedReceiver<usize>,
    pub(super) waiting: Vec<JoinHandle<Result<(), Error>>>,
}

pub(super) const HOLD: Duration = Duration::from_millis(10);

impl Line {
    /// Lets `clients` begin to wait one after the other.
    pub(super) async fn begin(scene: &Scene, clients: &[Client]) -> Self {
        let (sender, granted) = mpsc::unbounded_channel();
        let mut waiting = Vec::new();
        for (number, client) in clients.iter().enumerate() {
            let (sender, ambient) = (sender.clone(), scene.ambient.clone());
            let asking = client.lock("line").acquire();
            waiting.push(leasehold::background::spawn(async move {
                let guard = asking.await?;
                sender.send(number).expect("the test listens");
                ambient.clock.sleep_until(ambient.clock.now() + HOLD).await;
                guard.release().await?;
                Ok(())
            }));
            scene.settle().await;
        }
        Self { granted, waiting }
    }

    /// The order in which all that go on waiting were granted.
    pub(super) async fn order(mut self) -> Vec<usize> {
        for waiting in self.waiting {
            match waiting.await {
                Ok(outcome) => outcome.expect("a grant and a release"),
                Err(gone) => assert!(gone.is_cancelled()),
            }
        }
        let mut order = Vec::new();
        while let Ok(number) = self.granted.try_recv() {
            order.push(number);
        }
        order
    }
}

pub(super) async fn hold(client: &Client) -> Guard {
    let guard = client.lock("line").try_acquire().await.expect("an answer");
    guard.expect("a free lock")
}

pub(super) fn clients(scene: &Scene, count: usize) -> Vec<Client> {
    (0..count).map(|_| scene.other_client()).collect()
}

/// Nobody is left in a queue, and nothing reserved, at any member.
pub(super) async fn assert_nothing_left(scene: &Scene) {
    scene.settle().await;
    let key = Key::new("line").expect("a valid name");
    for store in &scene.stores {
        assert_eq!(store.waiters(&key).await.expect("an answer"), []);
        assert_eq!(store.holders(&key).await.expect("an answer"), []);
    }
    let taken = scene
        .client
        .lock("line")
        .try_acquire()
        .await
        .expect("an answer");
    taken
        .expect("nothing reserved")
        .release()
        .await
        .expect("an answer");
}

/// Holds the lock as nobody's client, so that it can be freed at one member after the other.
pub(super) async fn held_by_hand(scene: &Scene) -> Claim {
    let claim = scene.claim("line");
    let granted = scene.store().acquire(&claim).await;
    assert!(matches!(granted, Ok(Attempt::Granted(_))));
    claim
}

pub(super) async fn free_at(
    scene: &Scene,
    claim: &Claim,
    members: impl IntoIterator<Item = usize>,
) {
    for member in members {
        let freed = scene.stores[member]
            .depart(claim, &Departure::HandOver)
            .await;
        assert_eq!(freed.expect("an answer"), Release::Released);
    }
    scene.settle().await;
}
