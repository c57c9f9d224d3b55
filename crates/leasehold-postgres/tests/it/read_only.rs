//! Servers that an administrator set read-only, as before a switchover.

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::{Client, Error};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::servers::{LIMIT, PostgresServer, until};

use crate::support::{LONG, client, server, taken};

fn set_read_only(server: &PostgresServer, value: &str) {
    server.sql(&format!(
        "alter system set default_transaction_read_only = {value};"
    ));
    server.sql("select pg_reload_conf();");
    until("the setting is in force", || {
        server.sql("show default_transaction_read_only;") == [value]
    });
}

/// The refusal of an attempt. A session reads new settings a moment later than the server.
async fn refusal(client: &Client) -> Error {
    let end = SystemClock.now() + LIMIT;
    loop {
        match client.lock("job").try_acquire().await {
            Ok(_) => assert!(SystemClock.now() < end, "a read-only server grants"),
            Err(error) => return error,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_server_grants_nothing_until_reset() {
    let server = server().await;
    let connected = client(&server);
    taken(&connected, "job")
        .await
        .release()
        .await
        .expect("a release");
    set_read_only(&server, "on");
    for client in [connected, client(&server)] {
        let error = refusal(&client).await;
        assert!(error.is_not_ready(), "{error:?}");
        assert!(error.to_string().contains("read-only"), "{error}");
    }
    let waiter = client(&server);
    let waiting = leasehold::store::background::spawn(waiter.lock("job").ttl(LONG).acquire());
    set_read_only(&server, "off");
    let guard = waiting.await.expect("a task").expect("the lock");
    guard.release().await.expect("a release");
}

#[tokio::test(flavor = "multi_thread")]
async fn writable_host_is_used_after_a_switchover() {
    let (old, new) = (server().await, server().await);
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}/", old.port(), new.port());
    let url = old
        .url()
        .replace(&format!("127.0.0.1:{}/", old.port()), &hosts);
    let client = Client::new(PostgresStore::new(url).expect("a URL"));
    taken(&client, "job")
        .await
        .release()
        .await
        .expect("a release");
    assert_eq!(old.sql("select count(*) from leasehold.lock;"), ["1"]);
    set_read_only(&old, "on");
    let held = "select count(*) from leasehold.lock where name = 'next' and owner is not null;";
    let end = SystemClock.now() + LIMIT;
    loop {
        let taken = client.lock("next").ttl(LONG).acquire().await;
        if new.sql(held) == ["1"] {
            taken.expect("the lock").release().await.expect("a release");
            return;
        }
        assert!(
            SystemClock.now() < end,
            "{taken:?} is of a read-only server"
        );
    }
}
