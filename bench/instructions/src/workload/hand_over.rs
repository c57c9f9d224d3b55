use std::time::Duration;

use leasehold::Client;

use crate::exit::Fallible;

/// Long enough for a request to enter the queue, on a client that callgrind makes fifty times slower. A
/// question whether it has would count as well.
const QUEUED: Duration = Duration::from_millis(20);

/// Two clients take turns: each asks while the other client holds the lock, and gets it on release.
pub(super) async fn run(clients: [Client; 2], cycles: usize) -> Fallible {
    let locks = clients.each_ref().map(|client| client.lock("contended"));
    let mut held = locks[0].acquire().await?;
    for cycle in 1..=cycles {
        let next = tokio::spawn(locks[cycle % 2].acquire());
        tokio::time::sleep(QUEUED).await;
        held.release().await?;
        held = next.await??;
    }
    held.release().await?;
    Ok(())
}
