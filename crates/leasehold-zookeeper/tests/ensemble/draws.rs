//! Requests that draw their fence before they know whether it is their turn.

use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use leasehold::store::background::spawn;
use leasehold::store::locked;
use leasehold::{Client, Fence, Guard};
use leasehold_testkit::faults::Proxy;
use leasehold_testkit::servers::{Zookeeper, ZookeeperConnection};

use crate::gate::{Gate, Stop};
use crate::support::{client, hold_once, lock, until};

/// A client behind a gate that draws in advance from now on, since it drew alone so far.
struct Scene {
    servers: Zookeeper,
    gate: Gate,
    own: Client,
}

/// Starts a server on which the folder of the lock stays. It would remove a container, and then draws begin anew.
fn start() -> Zookeeper {
    let servers = Zookeeper::start();
    let mut server = ZookeeperConnection::open(servers.ports()[0], None);
    for path in ["/draws", "/draws/x"] {
        server.create(path, "");
    }
    servers
}

impl Scene {
    async fn start() -> Self {
        let servers = start();
        let gate = Gate::to(servers.ports()[0]);
        let own = client(&(servers.url_at([gate.port()]) + "/draws"));
        for _ in 0..3 {
            hold_once(&own, "x").await;
        }
        Self { servers, gate, own }
    }

    fn server(&self) -> ZookeeperConnection {
        ZookeeperConnection::open(self.servers.ports()[0], None)
    }

    /// Returns the value of the only counter.
    fn counter(&self) -> u64 {
        let (mut server, folder) = (self.server(), "/draws/leasehold:fences");
        let counters = server.children(folder);
        assert_eq!(counters.len(), 1);
        let text = server.data(&format!("{folder}/{}", counters[0]));
        text.unwrap().parse().unwrap()
    }

    fn nodes(&self) -> Vec<String> {
        self.server().children("/draws/x")
    }

    /// Acquires the lock, and does something between the draw and the look. Also returns the fence that was drawn.
    async fn acquire(&self, meanwhile: impl AsyncFnOnce()) -> (Guard, u64) {
        self.gate.stop(Stop::BehindTransaction);
        let acquiring = spawn(lock(&self.own, "x").acquire());
        self.gate.stopped().await;
        until("the draw", async || !self.nodes().is_empty()).await;
        let drawn = self.counter();
        meanwhile().await;
        self.gate.go_on();
        (acquiring.await.unwrap().unwrap(), drawn)
    }
}

#[tokio::test]
async fn zookeeper_fence_drawn_in_advance_counts() {
    let scene = Scene::start().await;
    let (guard, drawn) = scene.acquire(async || {}).await;
    assert_eq!(guard.fence().get(), drawn);
    guard.release().await.unwrap();
}

/// The fence that was drawn in advance is smaller, so it does not count.
#[tokio::test]
async fn zookeeper_holder_ahead_draws_after_the_draw_in_advance() {
    let scene = Scene::start().await;
    let slow = Gate::to(scene.servers.ports()[0]);
    let ahead = client(&(scene.servers.url_at([slow.port()]) + "/draws"));
    slow.stop(Stop::BeforeTransaction);
    let first = spawn(lock(&ahead, "x").acquire());
    slow.stopped().await;
    let earlier = Mutex::new(None::<Fence>);
    let (guard, drawn) = scene
        .acquire(async || {
            until("both are queued", async || scene.nodes().len() == 2).await;
            slow.go_on();
            let first = first.await.unwrap().unwrap();
            *locked(&earlier) = Some(first.fence());
            first.release().await.unwrap();
        })
        .await;
    let earlier = locked(&earlier).unwrap();
    assert!(earlier.get() > drawn, "{earlier}, {drawn}");
    assert!(guard.fence() > earlier, "{}, {earlier}", guard.fence());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn zookeeper_break_behind_a_draw_in_advance() {
    let scene = Scene::start().await;
    let (guard, drawn) = scene.acquire(async || scene.gate.cut()).await;
    assert!(guard.fence().get() > drawn);
    assert_eq!(scene.nodes().len(), 1);
    guard.release().await.unwrap();
    assert!(scene.nodes().is_empty());
}

#[tokio::test]
async fn zookeeper_answer_to_a_draw_in_advance_is_lost() {
    let scene = Scene::start().await;
    scene.gate.mute();
    let acquiring = spawn(lock(&scene.own, "x").acquire());
    until("the draw", async || !scene.nodes().is_empty()).await;
    let drawn = scene.counter();
    scene.gate.cut();
    let guard = acquiring.await.unwrap().unwrap();
    assert_eq!(scene.nodes().len(), 1, "the same node");
    assert!(guard.fence().get() > drawn);
    assert_eq!(guard.fence().get(), scene.counter());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn zookeeper_node_is_deleted_behind_its_draw() {
    let scene = Scene::start().await;
    let (guard, drawn) = scene
        .acquire(async || {
            let path = format!("/draws/x/{}", scene.nodes()[0]);
            scene.server().delete_all(&path);
            assert!(scene.nodes().is_empty());
        })
        .await;
    assert_eq!(scene.nodes().len(), 1);
    assert!(guard.fence().get() > drawn);
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

/// The first draw in advance fails then, and its request draws after its look.
#[tokio::test]
async fn zookeeper_draws_of_another_client_stop_those_in_advance() {
    let servers = start();
    let proxy = Proxy::to(servers.ports()[0]);
    let own = client(&(servers.url_at([proxy.port()]) + "/draws?timeout=8s"));
    let other = client(&(servers.url() + "/draws"));
    let mut least = [u64::MAX; 3];
    for _ in 0..6 {
        hold_once(&own, "x").await;
        hold_once(&own, "x").await;
        let foreign = lock(&other, "x").acquire().await.unwrap();
        let earlier = foreign.fence();
        foreign.release().await.unwrap();
        for least in &mut least {
            let before = proxy.requests();
            let guard = lock(&own, "x").acquire().await.unwrap();
            assert!(guard.fence() > earlier);
            guard.release().await.unwrap();
            // Keep-alives come in between now and then.
            *least = (*least).min(proxy.requests() - before);
        }
    }
    assert_eq!(least, [4, 3, 2]);
}

#[tokio::test]
async fn zookeeper_fences_of_three_clients_grow() {
    let servers = Zookeeper::start();
    let fences = Arc::new(Mutex::new(Vec::new()));
    let clients: Vec<Client> = (0..3).map(|_| client(&servers.url())).collect();
    let cycles = clients.iter().flat_map(|client| [client; 2]).map(|client| {
        let (client, fences) = (client.clone(), Arc::clone(&fences));
        spawn(async move {
            for _ in 0..60 {
                let guard = lock(&client, "x").acquire().await.unwrap();
                locked(&fences).push(guard.fence());
                guard.release().await.unwrap();
            }
        })
    });
    for cycle in join_all(cycles.collect::<Vec<_>>()).await {
        cycle.unwrap();
    }
    let fences = locked(&fences);
    assert_eq!(fences.len(), 360);
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}
