//! Crowds of waiters are served in order, whichever client they belong to, also after the server stood still.
//!
//! `LEASEHOLD_CROWD` is the number of waiters, 5000 for example. It prints what each waiter took.
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

use std::cell::RefCell;
use std::fs;
use std::time::Duration;

use futures_util::future::{join, join_all};
use leasehold::Client;
use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold::look::ClientId;
use leasehold_testkit::servers::Zookeeper;
use leasehold_zookeeper::ZooKeeperStore;

/// What a waiter may cost its client.
const BYTES_MAX: u64 = 10_000;

/// How many waiters show the usual pace.
const FEW: usize = 100;

/// Longer than anything takes that works.
const LONG: Duration = Duration::from_secs(300);

#[test]
fn zookeeper_crowd_is_served_in_order() {
    #[expect(
        clippy::disallowed_methods,
        reason = "how large a crowd the operator of a test wants"
    )]
    let asked = std::env::var("LEASEHOLD_CROWD").ok();
    let count: usize = asked.map_or(400, |count| count.parse().expect("a number of waiters"));
    let clients_of = count.div_ceil(FEW);
    let servers = Zookeeper::builder()
        .setting("maxSessionTimeout=40000")
        .start();
    let url = servers.url() + "?timeout=30s";
    let clients = |count: usize| -> Vec<Client> {
        let client = |_| Client::new(ZooKeeperStore::new(&url).unwrap());
        (0..count).map(client).collect()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let few = Crowd::of(&clients(1), FEW).await;
        few.report("100 waiters of one client", None);
        let one = Crowd::of(&clients(1), count).await;
        one.report("one client", Some(&few));
        let many = Crowd::of(&clients(clients_of), count).await;
        many.report("clients of 100", Some(&few));
        let one = clients(1);
        let thawed = Crowd::after(&one, count, async || {
            servers.freeze(0);
            // Long enough for each client to break its connection off.
            pause(Duration::from_secs(if count < 1_000 { 5 } else { 10 })).await;
            servers.thaw(0);
        });
        thawed.await.report("one client, frozen server", Some(&few));
    });
}

/// What a crowd took.
struct Crowd {
    bytes: u64,
    /// From one grant to the next.
    pace: Duration,
}

impl Crowd {
    async fn of(clients: &[Client], count: usize) -> Self {
        Self::after(clients, count, async || {}).await
    }

    /// Lets a crowd wait, does something, and lets the crowd have the lock, one after the other.
    async fn after(clients: &[Client], count: usize, meanwhile: impl AsyncFn()) -> Self {
        let lock = |client: &Client| client.lock("crowd").ttl(LONG / 10).wait(LONG);
        let holder = lock(&clients[0]).acquire().await.unwrap();
        for client in clients {
            // Opens its session.
            assert!(client.lock("crowd").try_acquire().await.unwrap().is_none());
        }
        let before = resident();
        let served = RefCell::new(Vec::new());
        let waits = (0..count).map(async |number| {
            let client = &clients[number % clients.len()];
            let guard = lock(client).acquire().await.unwrap();
            served.borrow_mut().push((client.id(), number));
            guard.release().await.unwrap();
        });
        // Polled once each in their order, the waiters of one client ask in their order.
        let waits = tokio::task::coop::unconstrained(join_all(waits));
        let watch = async {
            let mut queue: Vec<ClientId> = Vec::new();
            while queue.len() < count {
                pause(Duration::from_millis(200)).await;
                let waiters = clients[0].waiters("crowd").await.unwrap_or_default();
                queue = waiters.iter().map(|it| it.ticket.waiter.client()).collect();
            }
            let bytes = resident().saturating_sub(before) / count as u64;
            meanwhile().await;
            let began = now();
            holder.release().await.unwrap();
            (queue, bytes, began)
        };
        let (_, (queue, bytes, began)) = join(waits, watch).await;
        let pace = now().since(began) / u32::try_from(count).unwrap();
        let served = served.into_inner();
        let ids: Vec<ClientId> = served.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, queue, "the order of the queue");
        for client in clients {
            let own = served.iter().filter(|(id, _)| *id == client.id());
            let own: Vec<usize> = own.map(|(_, number)| *number).collect();
            assert!(own.is_sorted(), "{own:?}");
        }
        Self { bytes, pace }
    }

    /// Also compares with the usual pace.
    #[expect(clippy::print_stderr, reason = "what a run found")]
    fn report(&self, what: &str, usual: Option<&Self>) {
        let Self { bytes, pace } = self;
        eprintln!("{what}: {bytes} bytes a waiter, {pace:.2?} from one to the next");
        let Some(usual) = usual else { return };
        // A small crowd shows the room of its buffers.
        assert!(*bytes < BYTES_MAX * 2, "{what}: {bytes} bytes a waiter");
        assert!(*pace < usual.pace * 10, "{what}: {pace:?}");
    }
}

/// The memory of this process that is in use.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok())
        .unwrap_or_default()
        * 1024
}

fn now() -> BootInstant {
    SystemClock.now()
}

async fn pause(span: Duration) {
    SystemClock.sleep_until(now() + span).await;
}
