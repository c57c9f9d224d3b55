use std::time::Duration;

use futures_util::FutureExt as _;

use super::*;
use crate::ambient::Ambient;
use crate::clock::BootInstant;
use crate::holder::ClientInfo;
use crate::key::Key;
use crate::memory::MemoryStore;
use crate::owner::Owner;

const TTL: Duration = Duration::from_secs(30);

/// A lease and its heir, both of one client.
struct Scene {
    quorum: Quorum,
    ambient: Ambient,
    info: Arc<ClientInfo>,
    /// Under which the lease stands.
    holder: Claim,
    /// An attempt of the one who waits.
    heir: Claim,
}

impl Scene {
    async fn new() -> Self {
        let ambient = Ambient::default();
        let member = MemoryStore::member("m0", ambient.clone());
        let info = Arc::new(ClientInfo::of_this_process(&ambient, None));
        let claim = Claim::new(
            Key::new("lock").unwrap(),
            Owner::random(info.id, &*ambient.entropy),
            TTL,
            ambient.clock.wall(),
            Arc::clone(&info),
        );
        let mut scene = Self {
            quorum: Quorum::of_one(Arc::new(member)).foreign_gap(Duration::ZERO),
            ambient,
            info,
            holder: claim.clone(),
            heir: claim.clone(),
        };
        granted(&scene.quorum, &claim).await;
        scene.holder = scene.waits().await;
        scene.heir = scene.waits().await;
        scene.quorum.release(&claim).await.unwrap();
        granted(&scene.quorum, &scene.holder).await;
        scene.quorum.leave(&scene.holder);
        let reserve = scene.quorum.waits.reserve(scene.holder.owner);
        assert!(reserve.unwrap().is_had().await);
        scene
    }

    /// An attempt of somebody who has a place in the queue.
    async fn waits(&self) -> Claim {
        let waiter = Owner::random(self.info.id, &*self.ambient.entropy);
        let mut claim = self.holder.clone().with_wait(Wait::InTurn(waiter));
        // The first finds the lock busy, the second stands in the queue.
        for _ in 0..2 {
            claim.owner = Owner::random(self.info.id, &*self.ambient.entropy);
            let attempt = self.quorum.acquire(&claim).await.unwrap();
            assert!(matches!(attempt, Attempt::Busy(_)));
        }
        claim
    }

    fn waiter(claim: &Claim) -> Owner {
        match claim.wait {
            Wait::InTurn(waiter) => waiter,
            _ => panic!("it waits in turn"),
        }
    }

    /// The holder leaves the lease to its heir.
    async fn leave_it(&self) {
        let now: BootInstant = self.ambient.clock.now();
        let lease = Inheritance::new(Arc::new(self.holder.clone()), now + TTL * 4 / 5, now + TTL);
        let mut due = Box::pin(self.quorum.waits.due(Self::waiter(&self.heir)));
        assert!((&mut due).now_or_never().is_none(), "it is not its turn");
        assert!(self.quorum.bequeath(&lease).await);
        due.await;
    }

    fn waits_still(&self, claim: &Claim) -> bool {
        self.quorum.waits.of(Self::waiter(claim)).is_some()
    }

    async fn owner(&self) -> Option<Owner> {
        self.quorum.settle().await;
        let holders = self.quorum.holders(&self.holder.key).await.unwrap();
        holders.first().and_then(|holder| holder.owner)
    }
}

async fn granted(quorum: &Quorum, claim: &Claim) -> Grant {
    match quorum.acquire(claim).await.unwrap() {
        Attempt::Granted(grant) => grant,
        Attempt::Busy(busy) => panic!("{busy:?}"),
    }
}

#[tokio::test]
async fn nothing_is_kept_of_waits_that_had_a_lease_one_after_the_other() {
    let scene = Scene::new().await;
    assert!(scene.waits_still(&scene.holder), "it holds the lease");
    scene.leave_it().await;
    assert!(!scene.waits_still(&scene.holder));
    let lease = granted(&scene.quorum, &scene.heir).await.inherited.unwrap();
    scene.quorum.leave(&scene.heir);
    assert!(scene.waits_still(&scene.heir), "it holds the lease");
    scene.quorum.release(&lease.claim).await.unwrap();
    assert!(!scene.waits_still(&scene.heir));
    assert!(scene.quorum.waits.reserve(lease.claim.owner).is_none());
    assert_eq!(scene.owner().await, None);
}

/// Only where a runtime has several threads: else it asks before it can stop.
#[tokio::test]
async fn what_is_left_to_one_that_stops_waiting_just_then_is_freed() {
    let scene = Scene::new().await;
    scene.leave_it().await;
    scene.quorum.leave(&scene.heir);
    assert_eq!(scene.owner().await, None);
    assert!(!scene.waits_still(&scene.heir));
}

/// As for one whose machine stood still until little of it was left.
#[tokio::test]
async fn what_is_of_no_use_to_its_heir_is_freed() {
    let scene = Scene::new().await;
    scene.leave_it().await;
    let mut longer = scene.heir.clone();
    longer.ttl = TTL * 2;
    while let Attempt::Busy(_) = scene.quorum.acquire(&longer).await.unwrap() {
        assert_ne!(scene.owner().await, Some(scene.holder.owner));
    }
    assert_eq!(scene.owner().await, Some(longer.owner));
}
