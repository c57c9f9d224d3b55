//! Acquires and releases free locks, and compares that with a bare client that makes as many round trips.
//!
//! `cargo run --release --example cycles -- postgres://user:password@host/database`
#![expect(clippy::print_stdout, reason = "it prints its results")]

use std::time::Duration;

use futures_util::future::join_all;
use leasehold::Client;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold_postgres::PostgresStore;
use tokio_postgres::NoTls;
use tokio_postgres::types::Type;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const CYCLES: u32 = 2_000;
const ROUNDS: usize = 5;

/// What a bare client does instead of an acquire, and instead of a release.
const TABLE: &str = "create table if not exists bare (name text primary key, number bigint) with (fillfactor = 50); \
     insert into bare select 'bare/' || i, 0 from generate_series(0, 511) i on conflict do nothing; \
     create or replace function bare(key text, at bigint) returns bigint language plpgsql as $$ \
     begin update bare set number = at where name = key; return at; end $$";

fn main() -> Outcome<()> {
    let url = std::env::args().nth(1).ok_or("expected a URL")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(compare(&url))
}

async fn compare(url: &str) -> Outcome<()> {
    let store = PostgresStore::new(url)?;
    store.init().await?;
    let locks = Client::new(store);
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let driving = leasehold::store::background::spawn(connection);
    client.batch_execute(TABLE).await?;
    let statement = client
        .prepare_typed("select bare($1, $2)", &[Type::TEXT, Type::INT8])
        .await?;
    for in_flight in [1, 64] {
        let (mut bare, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let cycle = async |key: usize| -> Outcome<()> {
                let key = format!("bare/{key}");
                for _ in 0..2 {
                    client.query_one(&statement, &[&key, &7_i64]).await?;
                }
                Ok(())
            };
            bare.push(timed(in_flight, cycle).await?);
            let cycle = async |key: usize| -> Outcome<()> {
                let guard = locks.lock(format!("cycles/{key}")).acquire().await?;
                guard.release().await?;
                Ok(())
            };
            ours.push(timed(in_flight, cycle).await?);
        }
        let (bare, ours) = (median(bare), median(ours));
        let ratio = ours.as_secs_f64() / bare.as_secs_f64();
        println!(
            "{in_flight} in flight: bare {bare:.1?}, lock {ours:.1?} a cycle, ratio {ratio:.2}"
        );
    }
    driving.abort();
    Ok(())
}

/// Returns how long one cycle takes, while others are under way.
async fn timed(in_flight: usize, cycle: impl AsyncFn(usize) -> Outcome<()>) -> Outcome<Duration> {
    let began = SystemClock.now();
    let each = CYCLES / u32::try_from(in_flight)?;
    let tasks = (0..in_flight).map(async |task| {
        for _ in 0..each {
            cycle(task).await?;
        }
        Outcome::Ok(())
    });
    join_all(tasks).await.into_iter().collect::<Outcome<()>>()?;
    Ok(SystemClock.now().since(began) / CYCLES)
}

fn median(mut spans: Vec<Duration>) -> Duration {
    spans.sort_unstable();
    spans[spans.len() / 2]
}
