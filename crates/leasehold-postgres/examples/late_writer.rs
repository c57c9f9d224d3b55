//! A holder pauses until another client has the lock. The database then refuses its transaction.
//!
//! `cargo run --example late_writer -- postgres://user:password@host/database`
#![expect(clippy::print_stdout, reason = "it prints what happens")]

use std::time::Duration;

use leasehold::{Client, Fence, Key};
use leasehold_postgres::PostgresStore;
use tokio_postgres::NoTls;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const TABLE: &str = "create table if not exists account (id int primary key, balance bigint not null); \
     insert into account values (1, 0) on conflict do nothing";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let url = std::env::args().nth(1).ok_or("expected a URL")?;
    let store = PostgresStore::new(&url)?;
    store.init().await?;
    let (mut database, connection) = tokio_postgres::connect(&url, NoTls).await?;
    let driving = leasehold::store::background::spawn(connection);
    database.batch_execute(TABLE).await?;

    let key = Key::new("account/1")?;
    let (first, second) = (Client::new(store.clone()), Client::new(store.clone()));
    let guard = first
        .lock(&key)
        .ttl(Duration::from_secs(1))
        .acquire()
        .await?;
    let early = guard.fence();
    println!("the first client holds the lock with fence {early}, and pauses");
    // No process renews the lease from here on, as in a process that is stopped.
    drop(guard.into_handle()?);

    let guard = second.lock(&key).acquire().await?;
    println!(
        "the lease is over, and the second client holds the lock with fence {}",
        guard.fence()
    );
    deposit(&store, &mut database, &key, early, 100).await?;
    deposit(&store, &mut database, &key, guard.fence(), 7).await?;
    guard.release().await?;
    driving.abort();
    Ok(())
}

/// Adds to the balance, unless another client has the lock by now.
async fn deposit(
    store: &PostgresStore,
    database: &mut tokio_postgres::Client,
    key: &Key,
    fence: Fence,
    amount: i64,
) -> Outcome<()> {
    let transaction = database.transaction().await?;
    let update = "update account set balance = balance + $1 where id = 1 returning balance";
    let balance: i64 = transaction.query_one(update, &[&amount]).await?.get(0);
    if store.holds(&transaction, key, fence).await? {
        transaction.commit().await?;
        println!("fence {fence}: committed, the balance is {balance}");
    } else {
        transaction.rollback().await?;
        println!("fence {fence}: refused and rolled back, the lock has passed on");
    }
    Ok(())
}
