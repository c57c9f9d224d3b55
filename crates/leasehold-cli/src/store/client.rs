use std::ops::Deref;
use std::time::Duration;

use leasehold::{Client, blocking};

/// The client of a command. At the end of the command it waits for releases in progress.
#[derive(Debug)]
pub(crate) struct OwnClient(Client);

/// The longest time for which a store that hangs delays the end of a command.
const END_MAX: Duration = Duration::from_millis(500);

impl OwnClient {
    pub(crate) fn new(client: Client) -> Self {
        Self(client)
    }
}

impl Deref for OwnClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

impl Drop for OwnClient {
    fn drop(&mut self) {
        // Without an answer in time, the lease ends by itself.
        let _ = blocking::Client::from(self.0.clone()).close(END_MAX);
    }
}
