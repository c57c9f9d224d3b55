//! Clients that contend for one lock while members freeze, vanish and come back at random, without
//! losing data: exclusion and the order of fences must hold whatever happens.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::{Client, Guard};
use leasehold_testkit::Fault;

use crate::scene::Scene;

const TTL: Duration = Duration::from_secs(5);
const CLIENTS: usize = 4;
const ROUNDS: usize = 12;

/// All guards that were ever granted, and are not dropped yet.
#[derive(Default)]
struct Witness {
    guards: Vec<Rc<Guard>>,
    last_fence: u64,
    grants: usize,
}

impl Witness {
    fn granted(&mut self, guard: &Rc<Guard>) {
        let fence = guard.fence().get();
        assert!(fence > self.last_fence, "{fence} after {}", self.last_fence);
        self.last_fence = fence;
        self.grants += 1;
        self.guards.push(Rc::clone(guard));
        self.check();
    }

    fn check(&self) {
        let valid = self.guards.iter().filter(|guard| guard.is_valid()).count();
        assert!(valid <= 1, "{valid} valid guards of one lock");
    }
}

fn pick(scene: &Scene, below: u64) -> u64 {
    scene.ambient.entropy.next_u64() % below
}

async fn contend(scene: &Scene, client: Client, witness: &RefCell<Witness>) {
    for _ in 0..ROUNDS {
        let lock = client.lock("x").ttl(TTL).wait(Duration::from_secs(20));
        let Ok(guard) = lock.acquire().await else {
            continue;
        };
        let guard = Rc::new(guard);
        witness.borrow_mut().granted(&guard);
        // Up to three TTLs: with its renewals, or until it is lost.
        let work = Duration::from_millis(pick(scene, 15_000));
        tokio::select! {
            biased;
            _ = guard.lost() => {}
            () = scene.pass(work) => {}
        }
        witness.borrow().check();
        witness
            .borrow_mut()
            .guards
            .retain(|other| !Rc::ptr_eq(other, &guard));
        let guard = Rc::into_inner(guard).expect("the only one left");
        if pick(scene, 2) == 0 {
            let _ = guard.release().await;
        }
    }
}

async fn weather(scene: &Scene, witness: &RefCell<Witness>) {
    loop {
        scene.pass(Duration::from_millis(pick(scene, 2_000))).await;
        let member = &scene.members[pick(scene, scene.members.len() as u64) as usize];
        member.set(match pick(scene, 6) {
            0 => Fault::Frozen,
            1 => Fault::Unreachable,
            2 => Fault::Slow(Duration::from_millis(pick(scene, 600))),
            _ => Fault::None,
        });
        witness.borrow().check();
    }
}

fn storm(seed: u64) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let scene = Scene::quorum_of_seed(if seed.is_multiple_of(2) { 3 } else { 5 }, seed);
        let witness = RefCell::default();
        // No fence rests on clocks while no member loses its counter: in every other pair of
        // storms they stand still, so that only seals keep the members' counters in order.
        let client = |_| match seed % 4 {
            0 | 1 => scene.client_without_wall_clock(),
            _ => scene.other_client(),
        };
        let clients = (0..CLIENTS).map(|n| contend(&scene, client(n), &witness));
        tokio::select! {
            biased;
            _ = join_all(clients) => {}
            () = weather(&scene, &witness) => {}
        }
        witness.into_inner().grants
    })
}

#[test]
fn no_weather_makes_two_holders_or_turns_a_fence_back() {
    let mut grants = 0;
    for seed in 0..SEEDS {
        let granted = std::panic::catch_unwind(|| storm(seed));
        grants += granted.unwrap_or_else(|_| panic!("seed {seed}"));
    }
    // Else nothing was contended for, and nothing shown.
    assert!(
        grants as u64 > SEEDS * 10,
        "{grants} grants in {SEEDS} storms"
    );
}

const SEEDS: u64 = 12;
