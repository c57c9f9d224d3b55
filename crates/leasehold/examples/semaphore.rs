//! At most two of many workers resize images at the same time.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::cell::Cell;

use futures_util::future::try_join_all;
use leasehold::{Client, Error, memory::MemoryStore};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let locks = Client::new(MemoryStore::new());
    let (at_work, most) = (Cell::new(0), Cell::new(0));
    let resize = async |image: u32| {
        let permit = locks.semaphore("resize", 2).acquire().await?;
        permit
            .run(async |_| {
                at_work.set(at_work.get() + 1);
                most.set(most.get().max(at_work.get()));
                tokio::task::yield_now().await;
                println!("image {image} is resized");
                at_work.set(at_work.get() - 1);
            })
            .await
    };
    try_join_all((1..=6).map(resize)).await?;
    assert!((1..=2).contains(&most.get()), "{} at a time", most.get());
    Ok(())
}
