//! Many readers or one writer, and a writer that continues as a reader.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use leasehold::{Client, Error, Mode, memory::MemoryStore};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let locks = Client::new(MemoryStore::new());
    let (reading, writing) = (locks.lock("index").mode(Mode::Shared), locks.lock("index"));

    let (one, two) = (reading.acquire().await?, reading.acquire().await?);
    assert!(
        writing.try_acquire().await?.is_none(),
        "readers exclude writers"
    );
    one.release().await?;
    two.release().await?;

    let writer = writing.acquire().await?;
    assert!(
        reading.try_acquire().await?.is_none(),
        "a writer excludes readers"
    );
    println!("the index is written with fence {}", writer.fence());
    // No other writer can enter in between.
    writer.downgrade().await?;
    let reader = reading.acquire().await?;
    println!("both read: {} and {}", writer.mode(), reader.mode());
    Ok(())
}
