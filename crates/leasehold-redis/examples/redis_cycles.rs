//! Prints how many times a second free locks can be taken and released on the servers with the given URLs:
//! one at a time, 64 at once, and 512 at once.

use futures_util::future::join_all;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold::{Client, Error};
use leasehold_redis::RedisStore;

const CYCLES: u32 = 10_240;

fn main() -> Result<(), Error> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    let client = Client::new(RedisStore::new(&urls)?);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        // Opens the connections.
        client.lock("cycles").acquire().await?.release().await?;
        for at_once in [1, 64, 512] {
            run(&client, at_once).await?;
        }
        Ok(())
    })
}

#[expect(clippy::print_stdout, reason = "it is there to print")]
async fn run(client: &Client, at_once: u32) -> Result<(), Error> {
    let began = SystemClock.now();
    let workers = (0..at_once).map(async |worker| {
        let lock = client.lock(format!("cycles/{worker}"));
        for _ in 0..CYCLES / at_once {
            lock.acquire().await?.release().await?;
        }
        Ok::<(), Error>(())
    });
    for outcome in join_all(workers).await {
        outcome?;
    }
    let span = SystemClock.now().since(began);
    let rate = f64::from(CYCLES) / span.as_secs_f64();
    println!("{at_once} at once: {rate:.0} per second");
    Ok(())
}
