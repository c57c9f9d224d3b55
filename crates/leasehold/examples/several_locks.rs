//! A transfer between two accounts holds the locks of both. Two transfers in opposite directions cannot deadlock.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::cell::Cell;

use leasehold::{Client, Error, memory::MemoryStore};

struct Account {
    name: &'static str,
    balance: Cell<i64>,
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let store = MemoryStore::new();
    let (ours, theirs) = (Client::new(store.clone()), Client::new(store));
    let [ann, bob] = ["account/ann", "account/bob"].map(|name| Account {
        name,
        balance: Cell::new(100),
    });
    let (there, back) = tokio::join!(
        transfer(&ours, &ann, &bob, 30),
        transfer(&theirs, &bob, &ann, 5)
    );
    there?;
    back?;
    assert_eq!((ann.balance.get(), bob.balance.get()), (75, 125));
    Ok(())
}

async fn transfer(locks: &Client, from: &Account, to: &Account, amount: i64) -> Result<(), Error> {
    // Acquires all or none. The order of the names does not matter.
    let guards = locks.lock_all([from.name, to.name]).acquire().await?;
    guards
        .run(async |guards| {
            from.balance.set(from.balance.get() - amount);
            tokio::task::yield_now().await;
            to.balance.set(to.balance.get() + amount);
            for (key, fence) in guards.fences() {
                println!("{key} is written with fence {fence}");
            }
        })
        .await
}
