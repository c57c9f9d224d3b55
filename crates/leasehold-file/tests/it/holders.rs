use leasehold::Mode;
use leasehold::store::{Attempt, Inspection as _, Store};

use crate::helper::Helper;
use crate::world::{World, fence, held, key};

#[tokio::test]
async fn holder_is_named_only_while_holding() {
    let world = World::new();
    let other = world.another_store();
    assert!(other.holders(&key("deploy")).await.unwrap().is_empty());
    let (claim, fence) = world.take("deploy", 1000).await;
    for store in [&world.store, &other] {
        let shown = store.holders(&key("deploy")).await.unwrap();
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert_eq!(shown[0].mode, Mode::Exclusive);
        assert_eq!(shown[0].owner, Some(claim.owner));
        assert_eq!(shown[0].fence, Some(fence));
        assert_eq!(shown[0].client.as_ref(), Some(&*claim.client));
        assert_eq!(shown[0].remaining, None);
    }
    let busy = other.acquire(&world.claim("deploy", 0)).await.unwrap();
    assert!(matches!(busy, Attempt::Busy(busy) if busy.holder == Some(claim.owner)));
    world.store.release(&claim).await.unwrap();
    assert!(other.holders(&key("deploy")).await.unwrap().is_empty());
}

#[tokio::test]
async fn shared_holders_are_named_individually() {
    let world = World::new();
    let mut helpers: Vec<_> = (0..3).map(|_| Helper::start()).collect();
    for helper in &mut helpers {
        helper.take(world.dir.path(), "deploy", Mode::Shared);
    }
    let pids = async || {
        let shown = world.store.holders(&key("deploy")).await.unwrap();
        assert!(shown.iter().all(|holder| holder.mode == Mode::Shared));
        let mut pids: Vec<_> = shown
            .iter()
            .map(|it| it.client.as_ref().unwrap().pid)
            .collect();
        pids.sort_unstable();
        pids
    };
    let expected = |helpers: &[Helper]| {
        let mut pids: Vec<_> = helpers.iter().map(Helper::pid).collect();
        pids.sort_unstable();
        pids
    };
    assert_eq!(pids().await, expected(&helpers));
    // One dies without a word; its record stays behind, and is not believed.
    helpers.remove(1).kill();
    assert_eq!(pids().await, expected(&helpers));
    assert_eq!(helpers[1].ask(&["release"]), "Released");
    helpers.truncate(1);
    assert_eq!(pids().await, expected(&helpers));
    // The seat that is free again is taken by the next.
    let newcomer = world.shared("deploy", 0);
    fence(world.store.acquire(&newcomer).await);
    assert_eq!(pids().await.len(), 2);
}

#[tokio::test]
async fn dead_holder_record_is_not_shown() {
    let world = World::new();
    let mut helper = Helper::start();
    helper.take(world.dir.path(), "deploy", Mode::Exclusive);
    helper.kill();
    assert!(
        world
            .store
            .holders(&key("deploy"))
            .await
            .unwrap()
            .is_empty()
    );
    let file = std::fs::File::open(world.lock_file("deploy")).unwrap();
    file.try_lock().unwrap();
    let shown = world.store.holders(&key("deploy")).await.unwrap();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].owner, None);
}

/// Looking never takes a lock, so it makes no attempt fail at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looking_does_not_disturb_an_attempt() {
    let world = World::new();
    world.pass("deploy", 0).await;
    let other = world.another_store();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let looking = tokio::spawn(async move {
        let mut stopped = stopped;
        let mut looked = 0_u32;
        while stopped.try_recv().is_err() {
            other.holders(&key("deploy")).await.unwrap();
            other.list("", 10).await.unwrap();
            looked += 1;
        }
        looked
    });
    for _ in 0..200 {
        world.pass("deploy", 0).await;
    }
    stop.send(()).unwrap();
    assert!(looking.await.unwrap() > 0);
}

#[tokio::test]
async fn listing_shows_held_keys_with_the_prefix() {
    let world = World::new();
    let long = format!("jobs/{}", "é".repeat(200));
    let names = ["jobs/a", "jobs/B", "jobs%/c", "jobs*", "other", &long];
    let mut claims = Vec::new();
    for name in names {
        claims.push(world.take(name, 0).await.0);
    }
    world.pass("jobs/free", 0).await;
    let dir = world.dir.path();
    std::fs::write(dir.join("README.lock.txt"), "").unwrap();
    std::fs::create_dir(dir.join("jobs%2Ffolder.lock")).unwrap();
    let list = async |prefix: &str, limit| {
        let mut keys = world.store.list(prefix, limit).await.unwrap();
        keys.sort();
        keys.into_iter()
            .map(|key| key.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(list("jobs/", 10).await, ["jobs/B", "jobs/a", &long]);
    assert_eq!(list("jobs%", 10).await, ["jobs%/c"]);
    assert_eq!(list("", 10).await.len(), names.len());
    assert_eq!(list("", 2).await.len(), 2);
    assert_eq!(list("nothing", 10).await, [""; 0]);
    for claim in &claims {
        world.store.release(claim).await.unwrap();
    }
    assert_eq!(list("", 10).await, [""; 0]);
    let unheld = held(&claims[0], leasehold::Fence::MAX);
    assert!(matches!(
        world.store.renew(&[unheld]).await[..],
        [leasehold::store::Renewal::Lost(leasehold::LostReason::Gone)]
    ));
}
