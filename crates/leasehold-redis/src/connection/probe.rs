use std::fmt;
use std::pin::pin;

use leasehold::Error;
use leasehold::clock::{Clock, within};

use super::connector::{Connector, Dialog};
use super::tls::SLOW_HANDSHAKE;
use crate::resp::{CommandWriter, Value};
use crate::url::RedisUrl;

/// A connection that examines a server which perhaps cannot be a member. It uses the caller's runtime.
pub(crate) struct Probe(Dialog);

impl Probe {
    /// Connects, logs in and chooses the database.
    pub(crate) async fn open(url: &RedisUrl, clock: &dyn Clock) -> Result<Self, Error> {
        let mut connector = Connector::new(url.clone(), None);
        let tls = connector.tls.clone();
        let mut greeting = pin!(connector.greet());
        let greeted = match within(clock, clock.now() + SLOW_HANDSHAKE, &mut greeting).await {
            Some(greeted) => greeted,
            None => match tls.and_then(|tls| tls.unanswered(&url.address)) {
                Some(error) => Err(error),
                None => greeting.await,
            },
        };
        greeted.map(Self)
    }

    /// Returns whether the server can send a notification between replies.
    pub(crate) fn speaks_resp3(&self) -> bool {
        self.0.speaks_resp3
    }

    /// Sends commands in one write, and returns one reply for each. A reply may be an error of the server.
    pub(crate) async fn ask(
        &mut self,
        write: impl FnOnce(&mut CommandWriter<'_>),
    ) -> Result<Vec<Value>, Error> {
        self.0.ask(write).await
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").finish_non_exhaustive()
    }
}
