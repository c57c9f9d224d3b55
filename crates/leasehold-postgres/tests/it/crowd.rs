//! Many waiters for one lock, on a server whose commits take five milliseconds, as on the disk of a cloud.

use std::cell::RefCell;
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::Client;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::faults::Proxy;
use leasehold_testkit::servers::{PostgresServer, until};
use tokio::sync::watch;

use crate::support::{LONG, client, store, taken};

/// The number of waiters of one client, unless `LEASEHOLD_CROWD` names another.
const WAITERS: usize = 400;

/// The waiters that begin together. The order among them is chance.
const PORTION: usize = 20;

/// How long a waiter waits at most. The suite ends a test that takes as long.
const PATIENCE: Duration = Duration::from_secs(600);

fn waiters() -> usize {
    #[expect(
        clippy::disallowed_methods,
        reason = "the size of a test, for tests by hand"
    )]
    let given = std::env::var("LEASEHOLD_CROWD").ok();
    given.map_or(WAITERS, |count| count.parse().expect("a number"))
}

async fn slow_server() -> PostgresServer {
    let server = PostgresServer::builder()
        .setting("fsync", "on")
        .setting("commit_delay", "5000")
        .setting("commit_siblings", "0")
        .setting("track_functions", "all")
        .start();
    store(&server).init().await.expect("the schema");
    server
}

/// Lets `count` waiters wait, in portions, each of another client than the one before. Then frees the lock, and returns once all
/// had it. `halfway` happens when half of them had it.
///
/// # Panics
///
/// If the lock is not granted in the order of the portions.
async fn drains_in_order(clients: &[Client], count: usize, halfway: impl AsyncFn()) {
    let (order, (begin, begun)) = (RefCell::new(Vec::new()), watch::channel(0));
    let first = taken(&clients[0], "job").await;
    let waits = (0..count).map(async |number| {
        let portion = number / PORTION;
        let has_begun = begun
            .clone()
            .wait_for(|last| *last >= portion)
            .await
            .is_ok();
        let lock = clients[portion % clients.len()].lock("job");
        let guard = lock.ttl(LONG).wait(PATIENCE).acquire().await;
        let guard = guard.expect("the lock");
        assert!(has_begun);
        order.borrow_mut().push(portion);
        // The server may be away, and the client then releases in the background.
        let _ = guard.release().await;
    });
    let frees = async {
        for portion in 0..count.div_ceil(PORTION) {
            begin.send_replace(portion);
            until_waiting(&clients[0], count.min((portion + 1) * PORTION)).await;
        }
        first.release().await.expect("a release");
        while order.borrow().len() < count / 2 {
            pause(Duration::from_millis(5)).await;
        }
        halfway().await;
    };
    futures_util::join!(join_all(waits), frees);
    let order = order.into_inner();
    assert!(order.is_sorted(), "{order:?}");
}

async fn until_waiting(client: &Client, count: usize) {
    let end = SystemClock.now() + PATIENCE;
    while client.waiters("job").await.expect("an answer").len() < count {
        assert!(SystemClock.now() < end, "{count} never wait");
        pause(Duration::from_millis(20)).await;
    }
}

async fn pause(span: Duration) {
    SystemClock.sleep_until(SystemClock.now() + span).await;
}

#[tokio::test]
async fn crowd_of_one_client_drains_in_order() {
    let server = slow_server().await;
    drains_in_order(&[client(&server)], waiters(), async || {}).await;
}

#[tokio::test]
async fn crowds_of_many_clients_drain_in_order() {
    let server = slow_server().await;
    let clients: Vec<Client> = (0..10).map(|_| client(&server)).collect();
    drains_in_order(&clients, waiters(), async || {}).await;
}

/// All places are over by the clock of the server when it continues.
#[tokio::test(flavor = "multi_thread")]
async fn crowds_keep_their_order_over_a_freeze() {
    const FROZEN: Duration = Duration::from_secs(6);
    let server = slow_server().await;
    for count in [1, 5] {
        let clients: Vec<Client> = (0..count).map(|_| client(&server)).collect();
        let freeze = async || {
            server.freeze();
            pause(FROZEN).await;
            server.thaw();
        };
        drains_in_order(&clients, waiters() / 4, freeze).await;
    }
}

/// What waiters ask of the server while nothing changes.
#[tokio::test]
async fn more_waiters_ask_no_more() {
    const IDLE: Duration = Duration::from_secs(4);
    let server = slow_server().await;
    let network = Proxy::to(server.port());
    let store = PostgresStore::new(PostgresServer::url_at(network.port())).expect("a URL");
    let (holder, locks) = (client(&server), Client::new(store));
    let guard = taken(&holder, "job").await;
    for count in [20, 200] {
        let waits = (0..count).map(|_| locks.lock("job").ttl(LONG).wait(PATIENCE).acquire());
        let idle = async {
            until_waiting(&holder, count).await;
            let before = network.requests();
            pause(IDLE).await;
            network.requests() - before
        };
        let asked = tokio::select! {
            _ = join_all(waits) => panic!("granted while it was held"),
            asked = idle => asked,
        };
        // Each second one for all places, and those of a few waiters, of which each may be two messages.
        assert!(
            asked <= 60,
            "{count} waiters asked {asked} times in {IDLE:?}"
        );
    }
    guard.release().await.expect("a release");
}

/// Releases that wait at the server for longer than their limit would be sent again, and the server would have ever more to do.
#[tokio::test(flavor = "multi_thread")]
async fn burst_of_cancelled_waits_is_released_once() {
    const TTL: Duration = Duration::from_secs(9);
    let (server, count) = (slow_server().await, waiters() * 2);
    let (holder, client) = (client(&server), client(&server));
    let guard = taken(&holder, "job").await;
    let waits = (0..count).map(|_| client.lock("job").ttl(TTL).acquire());
    tokio::select! {
        _ = join_all(waits) => panic!("the lock is held"),
        () = until_waiting(&holder, count) => {}
    }
    client.close(PATIENCE).await.expect("all releases");
    guard.release().await.expect("a release");
    holder.close(PATIENCE).await.expect("all releases");
    let number = |question: &str| -> usize {
        let shown = server.sql(question);
        shown[0].parse().expect("a number")
    };
    // A connection that ends reports what it counted.
    let others = "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid();";
    until("the end of all connections", || number(others) == 0);
    let sent = number("select calls from pg_stat_user_functions where funcname = 'release';");
    let most = count + count / 4;
    assert!(sent <= most, "{sent} releases of {count} waits");
}

/// The server was stopped, and the place of the first waiter ended meanwhile. The second waiter came just before the stop.
#[tokio::test]
async fn stopped_server_keeps_the_order_of_waiters() {
    let server = PostgresServer::start();
    store(&server).init().await.expect("the schema");
    for (heard, next) in [("4.2 seconds", 1), ("9 seconds", 2)] {
        let client = client(&server);
        let guard = taken(&client, "job").await;
        server.sql(&format!(
            "insert into leasehold.waiter (name, ticket, owner, mode, ttl, proposal, until, heard) values
             ('job', 1, '{OWNER}1', 0, 60000000, 1, clock_timestamp() - interval '0.2 s', clock_timestamp() - interval '{heard}'),
             ('job', 2, '{OWNER}2', 0, 60000000, 2, clock_timestamp() + interval '60 s', clock_timestamp() - interval '3.5 s');
             update leasehold.lock set crowded = true where name = 'job';"
        ));
        guard.release().await.expect("a release");
        let owner = server.sql("select owner from leasehold.lock where name = 'job';");
        assert_eq!(owner, [format!("{OWNER}{next}")]);
        server.sql("delete from leasehold.lock; delete from leasehold.waiter;");
    }
}

/// All but the last digit.
const OWNER: &str = "0123456789abcdef.0123456789abcdef0123456789abcde";
