use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold::{Client, Error, blocking};

/// The client of a command. At the end of the command it waits for releases in progress.
#[derive(Debug)]
pub(crate) struct OwnClient {
    client: Client,
    /// Whether the command has waited for them.
    is_finished: AtomicBool,
    /// The longest time for which a store that hangs delays the end of the command.
    end_max: Duration,
}

/// For releases that are under way.
const END_MAX: Duration = Duration::from_millis(500);

/// For the ends of connections.
const WATCHER_END_MAX: Duration = Duration::from_millis(100);

impl OwnClient {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            is_finished: AtomicBool::new(false),
            end_max: END_MAX,
        }
    }

    /// The client of a command that only looks.
    pub(crate) fn watching(client: Client) -> Self {
        Self {
            client,
            is_finished: AtomicBool::new(false),
            end_max: WATCHER_END_MAX,
        }
    }

    /// Waits for releases in progress, so that the end of the command does not.
    ///
    /// # Errors
    ///
    /// Those of [`Client::close`].
    pub(crate) async fn finish(&self) -> Result<(), Error> {
        self.is_finished.store(true, Ordering::Relaxed);
        self.client.clone().close(self.end_max).await
    }
}

impl Deref for OwnClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for OwnClient {
    fn drop(&mut self) {
        if !*self.is_finished.get_mut() {
            // Without an answer in time, the lease ends by itself.
            let _ = blocking::Client::from(self.client.clone()).close(self.end_max);
        }
    }
}
