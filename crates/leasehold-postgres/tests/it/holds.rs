//! A transaction of the holder, and what may happen to its lock meanwhile.

use std::sync::Arc;
use std::time::Duration;

use leasehold::look::BreakOptions;
use leasehold::store::{Held, LockRequest, Progress, RenewReply};
use leasehold::{Client, Fence, Guard, Mode, ReleaseOutcome};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::{PostgresServer, PsqlSession, until};

use crate::support::{LONG, client, key, server, session, store, taken, until_waiting_for_a_row};

/// A lease that ends during the test.
const SHORT: Duration = Duration::from_millis(1500);

/// A holder whose renewals do not arrive once its network is frozen. Its transactions go another way.
struct Holder {
    network: Proxy,
    client: Client,
}

impl Holder {
    fn of(server: &PostgresServer) -> Self {
        let network = Proxy::to(server.port());
        let store = PostgresStore::new(PostgresServer::url_at(network.port()));
        let client = Client::new(store.expect("a URL"));
        Self { network, client }
    }

    /// Takes the lock, and renews it never more.
    async fn pauses_with(&self, name: &str) -> Guard {
        let lock = self.client.lock(name).ttl(SHORT);
        let guard = lock.acquire().await.expect("the lock");
        self.network.set(NetworkFault::Frozen);
        guard
    }
}

fn holds(name: &str, fence: Fence) -> String {
    format!("select leasehold.holds('{name}', {fence});")
}

fn begins(session: &mut PsqlSession, isolation: &str, name: &str, fence: Fence) {
    let sql = format!("begin isolation level {isolation}; {}", holds(name, fence));
    assert_eq!(session.run(&sql), ["BEGIN", "t"]);
}

#[tokio::test]
async fn paused_holder_cannot_commit_after_the_next() {
    let server = server().await;
    let holder = Holder::of(&server);
    let guard = holder.pauses_with("job").await;
    // Before the lease ends, a transaction looks at the data, and so has its snapshot.
    let mut late = server.session();
    late.run("begin isolation level repeatable read; select name from leasehold.lock;");
    let client = client(&server);
    let next = client.lock("job").acquire().await;
    let next = next.expect("the lock, once the lease is over");
    assert!(next.fence() > guard.fence());
    for session in [&mut late, &mut server.session()] {
        assert_eq!(session.run(&holds("job", guard.fence())), ["f"]);
    }
    assert_eq!(server.session().run(&holds("job", next.fence())), ["t"]);
}

/// The snapshot has the row of a lease that lasts for another minute.
#[tokio::test]
async fn old_snapshot_does_not_revive_a_released_lock() {
    let server = server().await;
    let client = client(&server);
    let guard = taken(&client, "job").await;
    let (fence, mut late) = (guard.fence(), server.session());
    late.run("begin isolation level repeatable read; select name from leasehold.lock;");
    guard.release().await.expect("a release");
    let next = taken(&client, "job").await;
    let seen =
        "select fence from leasehold.lock where until > clock_timestamp() and owner is not null;";
    assert_eq!(late.run(seen), [fence.to_string()], "the snapshot is old");
    assert_eq!(late.run(&holds("job", fence)), ["ERROR:  40001"]);
    assert!(next.is_valid());
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_passes_on_only_after_the_transaction() {
    let server = server().await;
    let holder = Holder::of(&server);
    let guard = holder.pauses_with("job").await;
    let mut work = server.session();
    begins(&mut work, "read committed", "job", guard.fence());
    let waits = client(&server).lock("job").acquire();
    let waits = leasehold::store::background::spawn(waits);
    tokio::task::block_in_place(|| {
        let is_over = "select until < clock_timestamp() from leasehold.lock;";
        until("the lease is over", || server.sql(is_over) == ["t"]);
        until_waiting_for_a_row(&server);
        let owner = server.sql("select owner is not null from leasehold.lock;");
        assert_eq!(owner, ["t"]);
        assert_eq!(work.run("commit;"), ["COMMIT"]);
    });
    let next = waits.await.expect("a task").expect("the lock");
    assert!(next.fence() > guard.fence());
    let mut work = server.session();
    assert_eq!(work.run(&holds("job", guard.fence())), ["f"]);
}

#[tokio::test]
async fn lease_is_renewed_during_the_transaction() {
    let server = server().await;
    let client = client(&server);
    let guard = client
        .lock("job")
        .ttl(SHORT)
        .acquire()
        .await
        .expect("the lock");
    let mut work = server.session();
    begins(&mut work, "read committed", "job", guard.fence());
    let first = guard.deadline();
    let moved = guard.deadline_moved(first).await;
    assert!(moved > first && guard.is_valid());
    // A waiter takes its place meanwhile.
    let waits = client.lock("job").wait(SHORT).acquire().await;
    assert!(waits.expect_err("a held lock").is_busy());
    work.run("commit;");
    assert_eq!(
        guard.release().await.expect("a release"),
        ReleaseOutcome::Released
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn release_waits_for_the_transaction() {
    let server = server().await;
    let client = client(&server);
    let guard = taken(&client, "job").await;
    let fence = guard.fence();
    let mut work = server.session();
    begins(&mut work, "read committed", "job", fence);
    let release = leasehold::store::background::spawn(guard.release());
    tokio::task::block_in_place(|| {
        until_waiting_for_a_row(&server);
        let owner = server.sql("select owner is not null from leasehold.lock;");
        assert_eq!(owner, ["t"]);
        work.run("commit;");
    });
    let released = release.await.expect("a task");
    assert_eq!(released.expect("a release"), ReleaseOutcome::Released);
    let mut late = server.session();
    assert_eq!(late.run(&holds("job", fence)), ["f"]);
}

#[tokio::test]
async fn shared_holders_hold_their_own_fences() {
    let server = server().await;
    let client = client(&server);
    let lock = client.lock("job").mode(Mode::Shared);
    let (one, two) = (
        lock.acquire().await.expect("the lock"),
        lock.acquire().await.expect("the lock"),
    );
    let mut work = server.session();
    begins(&mut work, "read committed", "job", one.fence());
    assert_eq!(work.run(&holds("job", two.fence())), ["t"]);
    work.run("commit;");
    let fence = one.fence();
    one.release().await.expect("a release");
    assert_eq!(work.run(&holds("job", fence)), ["f"]);
    assert_eq!(work.run(&holds("job", two.fence())), ["t"]);
}

/// Both leases are over in the end, the second one while the attempt waits for the transaction of the first.
#[tokio::test]
async fn writer_waits_for_the_transaction_of_each_reader() {
    let server = server().await;
    let client = client(&server);
    let lock = client.lock("job").mode(Mode::Shared).ttl(LONG);
    let one = lock.acquire().await.expect("the lock");
    let two = lock.acquire().await.expect("the lock");
    let mut works = [server.session(), server.session()];
    for (work, guard) in works.iter_mut().zip([&one, &two]) {
        begins(work, "read committed", "job", guard.fence());
    }
    let ends = |guard: &Guard| {
        let (table, fence) = ("leasehold.sharer", guard.fence());
        let sql = format!("update {table} set until = clock_timestamp() where fence = {fence};");
        server.sql(&sql);
    };
    let attempt = "select leasehold.acquire('job', 'writer', null, 0, 60000000, 1, false, false);";
    let mut writer = server.session();
    ends(&one);
    writer.send(attempt);
    until_waiting_for_a_row(&server);
    ends(&two);
    works[0].run("commit;");
    let answer = writer.answer();
    assert!(answer[0].starts_with("busy"), "{answer:?}");
    works[1].run("commit;");
    let answer = writer.run(attempt);
    assert!(answer[0].starts_with("granted"), "{answer:?}");
}

#[tokio::test]
async fn downgrade_that_waits_delays_no_other_lease() {
    let server = server().await;
    let (session, one) = session(&store(&server));
    let mut other = LockRequest::clone(&one);
    other.key = key("other");
    let other = Arc::new(other);
    let held = async |request: &Arc<LockRequest>| {
        let grant = session.acquire(request, &Progress::new()).await;
        let (request, fence) = (Arc::clone(request), grant.expect("the lock").fence);
        Held { request, fence }
    };
    let (mut one, other) = (held(&one).await, held(&other).await);
    let mut work = server.session();
    begins(&mut work, "read committed", "job", one.fence);
    one.request = Arc::new(LockRequest::clone(&one.request).with_mode(Mode::Shared));
    let leases = [one, other];
    let replies = session.renew(&leases).await;
    let [RenewReply::Unknown(_), RenewReply::Renewed(_)] = replies[..] else {
        panic!("{replies:?}");
    };
    work.run("commit;");
    let replies = session.renew(&leases).await;
    let [RenewReply::Renewed(_), RenewReply::Renewed(_)] = replies[..] else {
        panic!("{replies:?}");
    };
}

#[tokio::test]
async fn broken_holder_holds_no_more() {
    let server = server().await;
    let client = client(&server);
    let guard = taken(&client, "job").await;
    let mut work = server.session();
    assert_eq!(work.run(&holds("job", guard.fence())), ["t"]);
    let broken = client
        .break_lock("job", guard.fence(), BreakOptions::at_its_end())
        .await;
    broken.expect("an answer");
    assert_eq!(work.run(&holds("job", guard.fence())), ["f"]);
}

#[tokio::test]
async fn library_checks_in_a_transaction_of_the_caller() {
    let server = server().await;
    let (locks, client) = (store(&server), client(&server));
    let guard = taken(&client, "job").await;
    let fence = guard.fence();
    let (mut database, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls)
        .await
        .expect("a connection");
    let driving = leasehold::store::background::spawn(connection);
    let transaction = database.transaction().await.expect("a transaction");
    assert!(
        locks
            .holds(&transaction, &key("job"), fence)
            .await
            .expect("an answer")
    );
    transaction.commit().await.expect("a commit");
    guard.release().await.expect("a release");
    let transaction = database.transaction().await.expect("a transaction");
    assert!(
        !locks
            .holds(&transaction, &key("job"), fence)
            .await
            .expect("an answer")
    );
    drop(transaction);
    driving.abort();
}
