//! Who holds a lock together with others has a fence of its own, also where the members heard of them
//! in different orders.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::{Client, Fence, Guard, Mode, Permits};
use leasehold_testkit::Fault;

use crate::scene::Scene;

const TOGETHER: usize = 4;

fn modes() -> [Mode; 2] {
    let permits = Permits::new(64).expect("a number of permits");
    [Mode::Shared, Mode::Permit(permits)]
}

/// Clients of members that hear what is sent at one moment in different orders.
fn jittery(members: usize, luck: u32) -> (Scene, Vec<Client>) {
    let scene = Scene::quorum(members);
    for _ in 0..luck {
        scene.ambient.entropy.next_u64();
    }
    let clients = (0..TOGETHER).map(|_| scene.other_client()).collect();
    for member in &scene.members {
        member.set(Fault::Jittery(Duration::from_millis(20)));
    }
    (scene, clients)
}

async fn take_at_once(clients: &[Client], mode: Mode) -> Vec<Guard> {
    let taking = clients.iter().map(|client| {
        let lock = client.lock("x").mode(mode).wait(Duration::from_secs(20));
        lock.acquire()
    });
    let taken = join_all(taking).await;
    taken.into_iter().map(|it| it.expect("a lock")).collect()
}

#[tokio::test(start_paused = true)]
async fn who_comes_at_once_has_a_fence_of_its_own_and_who_comes_later_a_greater_one() {
    for (members, luck) in [3, 5].into_iter().flat_map(|n| (0..8).map(move |l| (n, l))) {
        for mode in modes() {
            let (_scene, clients) = jittery(members, luck);
            let first = take_at_once(&clients, mode).await;
            let second = take_at_once(&clients, mode).await;
            let fences = |guards: &[Guard]| guards.iter().map(Guard::fence).collect();
            let (first, second): (HashSet<Fence>, HashSet<Fence>) =
                (fences(&first), fences(&second));
            let what = format!("{mode} on {members} members, luck {luck}: {first:?}, {second:?}");
            assert_eq!((first.len(), second.len()), (TOGETHER, TOGETHER), "{what}");
            assert!(first.iter().max() < second.iter().min(), "{what}");
        }
    }
}
