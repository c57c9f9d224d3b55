//! What the tables cost.

use leasehold::{Client, Mode};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::faults::Proxy;
use leasehold_testkit::servers::{PostgresServer, until};

use crate::support::{LONG, client, server, taken};

#[tokio::test]
async fn free_lock_takes_two_round_trips() {
    const CYCLES: u64 = 50;
    let server = server().await;
    let network = Proxy::to(server.port());
    let store = PostgresStore::new(PostgresServer::url_at(network.port())).expect("a URL");
    let client = Client::new(store);
    taken(&client, "job")
        .await
        .release()
        .await
        .expect("a release");
    let before = network.requests();
    for _ in 0..CYCLES {
        taken(&client, "job")
            .await
            .release()
            .await
            .expect("a release");
    }
    assert_eq!(network.requests() - before, 2 * CYCLES);
}

#[tokio::test]
async fn cycles_do_not_grow_the_tables() {
    let server = server().await;
    let client = client(&server);
    for mode in [Mode::Exclusive, Mode::Shared] {
        for _ in 0..1_000 {
            let guard = client
                .lock("job")
                .mode(mode)
                .acquire()
                .await
                .expect("the lock");
            guard.release().await.expect("a release");
        }
        if mode == Mode::Exclusive {
            let size = server
                .sql("select pg_total_relation_size('leasehold.lock') / 1024;")
                .remove(0);
            assert!(size.parse::<u32>().expect("a size") <= 64, "{size} KiB");
        }
    }
    // A session of the server reports its updates within ten seconds.
    let updates = "select n_tup_upd >= 2000 and n_tup_hot_upd > n_tup_upd * 0.9 \
                   from pg_stat_user_tables where relname = 'lock';";
    until("most updates stay on their page", || {
        server.sql(updates).pop().as_deref() == Some("t")
    });
}

/// A scan of the whole table also reads the rows of waiters that are gone.
#[tokio::test(flavor = "multi_thread")]
async fn queue_is_read_by_its_index() {
    const HAND_OVERS: usize = 20;
    let server = server().await;
    let client = client(&server);
    // The server reads the empty table for each change of its form.
    let made =
        "select seq_scan from pg_stat_user_tables where relname = 'waiter' and seq_scan > 0;";
    let mut before = 0;
    tokio::task::block_in_place(|| {
        until("its making is reported", || {
            let scans = server.sql(made);
            before = scans.first().map_or(0, |it| it.parse().expect("a number"));
            before > 0
        });
    });
    let mut guard = taken(&client, "job").await;
    for _ in 0..HAND_OVERS {
        let waiting = leasehold::store::background::spawn(client.lock("job").ttl(LONG).acquire());
        tokio::task::block_in_place(|| {
            let is_crowded = "select crowded from leasehold.lock;";
            until("a waiter", || server.sql(is_crowded) == ["t"]);
        });
        guard.release().await.expect("a release");
        guard = waiting.await.expect("a task").expect("the lock");
    }
    guard.release().await.expect("a release");
    client.close(LONG).await.expect("all is released");
    // A session reports its reads within ten seconds. After a silence of two seconds, a slow machine reads all places.
    let reads = format!(
        "select seq_scan from pg_stat_user_tables where relname = 'waiter' and idx_scan >= {HAND_OVERS};"
    );
    let mut scans = Vec::new();
    until("the reads are reported", || {
        scans = server.sql(&reads);
        !scans.is_empty()
    });
    let scans: usize = scans[0].parse().expect("a number");
    assert!(scans < before + HAND_OVERS / 2, "{scans} scans");
}

#[tokio::test]
async fn sweep_drops_only_what_is_old_and_free() {
    let server = server().await;
    let client = client(&server);
    for name in ["old", "new", "held", "shared"] {
        taken(&client, name)
            .await
            .release()
            .await
            .expect("a release");
    }
    let held = taken(&client, "held").await;
    let shared = client
        .lock("shared")
        .mode(Mode::Shared)
        .acquire()
        .await
        .expect("the lock");
    server.sql("update leasehold.lock set fence = 7 where name <> 'new';");
    server.sql(
        "insert into leasehold.ended select 'gone', i::text, false, clock_timestamp() - interval '1 s' \
         from generate_series(1, 500) i;",
    );
    for _ in 0..3 {
        server.sql("select count(leasehold.sweep()) from generate_series(1, 200);");
    }
    let left = server.sql("select name from leasehold.lock order by name;");
    assert_eq!(left, ["held", "new", "shared"]);
    assert_eq!(server.sql("select count(*) from leasehold.ended;"), ["0"]);
    for guard in [held, shared] {
        guard.release().await.expect("a release");
    }
}
