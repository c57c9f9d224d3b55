//! Many waiters for one lock. All but the fixture holds for every store on servers.
//!
//! `LEASEHOLD_CROWD=5000` is the number of waiters, `LEASEHOLD_CROWD_FROZEN=10` for how many seconds the server is frozen.

use std::env;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::try_join_all;
use leasehold::clock::{BootInstant, Clock as _, SystemClock, within};
use leasehold::store::background::spawn;
use leasehold::{Client, Guard};
use leasehold_testkit::servers::EtcdServer;
use tokio::task::JoinHandle;

use crate::{client, lock, url};

/// The server of a crowd.
struct Fixture(EtcdServer);

impl Fixture {
    fn start() -> Self {
        Self(EtcdServer::start())
    }

    fn client(&self) -> Client {
        client(&url(&self.0))
    }

    /// Stops the server without an end of its connections.
    fn freeze(&self) {
        self.0.freeze();
    }

    fn thaw(&self) {
        self.0.thaw();
    }

    /// Returns how many requests the server got so far, without the renewals of leases.
    fn requests(&self) -> u64 {
        let methods = ["Range", "Txn", "LeaseGrant", "LeaseRevoke", "Put"];
        methods.into_iter().map(|method| self.0.calls(method)).sum()
    }

    /// Returns what clients have left at the server.
    fn leftovers(&self) -> usize {
        let output = self.0.etcdctl(&["lease", "list"]);
        let text = String::from_utf8(output.stdout).unwrap();
        // The first line says how many there are. One lease has the last fences of all locks.
        text.lines().count().saturating_sub(2)
    }
}

/// The waiters of a crowd begin in this many groups, each after the one before it.
const GROUPS: usize = 5;

/// How long a crowd may take on a slow machine.
const LIMIT: Duration = Duration::from_secs(300);

/// Waiters in the queue of a lock that is held.
struct Crowd {
    guard: Guard,
    tasks: Vec<JoinHandle<()>>,
    /// The groups of the waiters, in the order in which they had the lock.
    served: Arc<Mutex<Vec<usize>>>,
}

impl Crowd {
    /// `waiters` wait at each of the clients.
    async fn gather(clients: &[Client], waiters: usize) -> Self {
        let guard = lock(&clients[0], "job").acquire().await.unwrap();
        let served = Arc::<Mutex<Vec<usize>>>::default();
        let mut tasks = Vec::new();
        for group in 0..GROUPS {
            for client in clients {
                for _ in 0..waiters / GROUPS {
                    let (lock, served) = (lock(client, "job").wait(LIMIT), Arc::clone(&served));
                    tasks.push(spawn(async move {
                        let guard = lock.acquire().await.unwrap();
                        served.lock().unwrap().push(group);
                        guard.release().await.unwrap();
                    }));
                }
            }
            while clients[0].waiters("job").await.map_or(0, |all| all.len()) < tasks.len() {
                pause(Duration::from_millis(50)).await;
            }
        }
        Self {
            guard,
            tasks,
            served,
        }
    }

    /// Lets the waiters have the lock one after the other, and returns how long each takes.
    async fn drain(self) -> Duration {
        let count = self.tasks.len();
        let began = SystemClock.now();
        self.guard.release().await.unwrap();
        let served = within(&SystemClock, began + LIMIT, try_join_all(self.tasks)).await;
        served.expect("all had the lock in time").unwrap();
        let order = self.served.lock().unwrap();
        assert!(order.len() == count && order.is_sorted(), "{order:?}");
        SystemClock.now().since(began) / u32::try_from(count).unwrap()
    }
}

async fn pause(span: Duration) {
    SystemClock.sleep_until(SystemClock.now() + span).await;
}

fn number(name: &str, default: usize) -> usize {
    #[expect(clippy::disallowed_methods, reason = "whoever runs the test chooses")]
    let named = env::var(name).ok();
    named.map_or(default, |text| text.parse().unwrap())
}

async fn gone(fixture: &Fixture, clients: &[Client]) {
    // They leave no lease behind.
    let closed = clients.iter().map(|client| client.clone().close(LIMIT));
    try_join_all(closed).await.unwrap();
    let end: BootInstant = SystemClock.now() + LIMIT;
    while fixture.leftovers() > 0 {
        assert!(
            SystemClock.now() < end,
            "{} leases are left",
            fixture.leftovers()
        );
        pause(Duration::from_millis(200)).await;
    }
}

/// The resident memory of this process, in bytes.
fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<usize> = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * 4096
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_of_one_client_drain_after_an_outage() {
    let count = number("LEASEHOLD_CROWD", 400);
    let frozen = number("LEASEHOLD_CROWD_FROZEN", 3);
    let fixture = Fixture::start();
    let client = fixture.client();
    let few = Crowd::gather(std::slice::from_ref(&client), 100).await;
    let pace = few.drain().await;
    let before = memory();
    let crowd = Crowd::gather(std::slice::from_ref(&client), count).await;
    // With room for what the other tests of this process have meanwhile.
    let grown = memory().saturating_sub(before).saturating_sub(16 << 20);
    assert!(grown < count * 10_000, "{grown} bytes");
    fixture.freeze();
    pause(Duration::from_secs(frozen as u64)).await;
    fixture.thaw();
    let crowds_pace = crowd.drain().await;
    println!("{count} waiters: {crowds_pace:?} each, {pace:?} among 100");
    // The first of them waits until the client has a connection again.
    assert!(
        crowds_pace < pace * 3 + Duration::from_millis(20),
        "{crowds_pace:?}, {pace:?}"
    );
    gone(&fixture, &[client]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_of_many_clients_drain_after_an_outage() {
    let clients = number("LEASEHOLD_CROWD", 200) / 20;
    let frozen = number("LEASEHOLD_CROWD_FROZEN", 3);
    let fixture = Fixture::start();
    let clients: Vec<Client> = (0..clients).map(|_| fixture.client()).collect();
    let crowd = Crowd::gather(&clients, 20).await;
    fixture.freeze();
    pause(Duration::from_secs(frozen as u64)).await;
    fixture.thaw();
    let pace = crowd.drain().await;
    println!("{} clients of 20 waiters: {pace:?} each", clients.len());
    gone(&fixture, &clients).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_crowd_costs_the_server_nothing() {
    let fixture = Fixture::start();
    let client = fixture.client();
    let crowd = Crowd::gather(std::slice::from_ref(&client), 200).await;
    let before = fixture.requests();
    pause(Duration::from_secs(4)).await;
    let asked = fixture.requests() - before;
    // The client asks now and then whether the server still answers.
    assert!(asked <= 8, "{asked} requests in 4 s");
    crowd.drain().await;
}
