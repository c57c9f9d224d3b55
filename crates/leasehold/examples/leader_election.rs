//! One of several machines leads, and all can see which. If it resigns or dies, the next one leads.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use leasehold::{Client, Error, Fence, memory::MemoryStore};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let store = MemoryStore::new();
    let (first, second) = (Client::new(store.clone()), Client::new(store));
    let (first, second) = tokio::join!(
        schedule(&first, "10.0.0.7:8080"),
        schedule(&second, "10.0.0.8:8080")
    );
    assert_ne!(first?, second?, "they led one after the other");
    Ok(())
}

/// Leads until the work is done, and returns the fence of that term.
async fn schedule(locks: &Client, address: &str) -> Result<Fence, Error> {
    let election = locks.election("scheduler").value(address);
    loop {
        let leadership = election.campaign().await?;
        // The body is cancelled if the leadership is lost. The client resigns after the body.
        let term = leadership.run(async |leadership| {
            let leader = election.leader().await?.expect("this client leads");
            assert_eq!(leader.value, address);
            println!("{address} leads with fence {}", leadership.fence());
            Ok(leadership.fence())
        });
        match term.await {
            Ok(led) => return led,
            Err(error) => println!("{address} leads no more: {error}"),
        }
    }
}
