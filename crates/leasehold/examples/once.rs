//! A payment that takes effect once, however often its message is delivered.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::cell::Cell;

use leasehold::{Client, Guard, memory::MemoryStore};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
pub(crate) async fn main() -> Outcome<()> {
    let locks = Client::new(MemoryStore::new());
    let charges = Cell::new(0);
    let charge = async |_: &Guard| {
        charges.set(charges.get() + 1);
        Ok::<_, String>(format!("receipt {}", charges.get()))
    };

    // The key of the request is its name. The payload is what the key stands for.
    let request = locks.once("charge/4711").payload("EUR 12.00");
    let first = request.run(charge).await??;
    let again = request.run(charge).await??;
    assert_eq!((&again.bytes, charges.get()), (&first.bytes, 1));
    println!("{}", String::from_utf8_lossy(&again.bytes));

    // Another payload under the same key is a mistake of the caller.
    let other = locks.once("charge/4711").payload("EUR 99.00");
    let error = other.run(charge).await.expect_err("the key is in use");
    println!("refused: {error}");

    // A request that failed runs again.
    let request = locks.once("charge/4712");
    let declined = request.run(async |_| Err::<&str, _>("declined")).await?;
    assert_eq!(declined, Err("declined"));
    assert_eq!(&*request.run(charge).await??.bytes, b"receipt 2");
    Ok(())
}
