use std::time::Duration;

use crate::blocking::Client;
use crate::types::Error;

impl Client {
    /// Waits until the releases and cancelled attempts in progress are finished, for at most `limit`.
    /// Returns whether they are.
    ///
    /// # Errors
    ///
    /// The errors of [`crate::Client::close`].
    pub fn close(self, limit: Duration) -> Result<bool, Error> {
        pollster::block_on(self.0.close_within(limit))
    }
}
