//! Elections of a leader.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::election::{Election, Leader, LeaderChange, LeaderWatch};
use leasehold::{Client, Error, ErrorKind};
use serde::Serialize;

use crate::inspect::{ClientFields, seconds_since_1970};
use crate::request::with_options;
use crate::{BoxFuture, ErrorFields, Held, Options, locked};

/// An election in which this client campaigns, or which it observes.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The name of the election.
    pub name: String,
    /// What the leader publishes.
    pub value: String,
    /// The pause between two reads of an observer.
    pub poll_interval: Option<Duration>,
    /// How to acquire its lock. It is never shared.
    pub options: Options,
}

/// The leader of an election.
#[derive(Clone, Debug, Serialize)]
pub struct LeaderFields {
    /// The identity of its lease.
    pub owner: String,
    /// Its description of itself.
    pub client: Option<ClientFields>,
    /// Its fence.
    pub fence: u64,
    /// What it publishes.
    pub value: String,
    /// When it became the leader, in seconds since 1970.
    pub since: f64,
}

/// A change that an observer sees. Without a leader and an error, there is no leader.
#[derive(Clone, Debug, Serialize)]
pub struct LeaderChangeFields {
    /// Who leads now.
    pub leader: Option<LeaderFields>,
    /// Why the leader is not known.
    pub error: Option<ErrorFields>,
}

/// The changes of an election. One call at a time may wait for the next one.
#[derive(Clone)]
pub struct Watch {
    watch: Arc<Mutex<Option<LeaderWatch>>>,
}

impl Campaign {
    /// Waits until this client leads.
    pub fn campaign(self, client: &Client) -> BoxFuture<Held> {
        let campaign = self.builder(client).campaign();
        Box::pin(async move { campaign.await.map(Held::from) })
    }

    /// Reads the current leader.
    pub fn leader(self, client: &Client) -> BoxFuture<Option<LeaderFields>> {
        let election = self.builder(client);
        Box::pin(async move { Ok(election.leader().await?.as_ref().map(LeaderFields::of)) })
    }

    /// Returns the changes of the leader.
    ///
    /// # Errors
    ///
    /// Those of [`Election::observe`].
    pub fn observe(self, client: &Client) -> Result<Watch, Error> {
        let watch = self.builder(client).observe()?;
        Ok(Watch {
            watch: Arc::new(Mutex::new(Some(watch))),
        })
    }

    fn builder(&self, client: &Client) -> Election {
        let election = client.election(&self.name).value(&self.value);
        let election = match self.poll_interval {
            Some(pause) => election.poll_interval(pause),
            None => election,
        };
        with_options!(election, self.options)
    }
}

impl Watch {
    /// Returns the next change; `None` if the client was closed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] while another call waits.
    pub fn next(&self) -> Result<BoxFuture<Option<LeaderChangeFields>>, Error> {
        let Some(watch) = locked(&self.watch).take() else {
            let text =
                "another call waits for the next change; give each reader a watch of its own";
            return Err(Error::new(ErrorKind::InvalidInput, text));
        };
        let mut lent = Lent {
            slot: Arc::clone(&self.watch),
            watch: Some(watch),
        };
        Ok(Box::pin(async move {
            let Some(watch) = &mut lent.watch else {
                return Ok(None);
            };
            Ok(watch.next().await.map(LeaderChangeFields::of))
        }))
    }
}

/// Gives the watch back at its end, also if the call is cancelled.
struct Lent {
    slot: Arc<Mutex<Option<LeaderWatch>>>,
    watch: Option<LeaderWatch>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        *locked(&self.slot) = self.watch.take();
    }
}

impl LeaderFields {
    fn of(leader: &Leader) -> Self {
        Self {
            owner: leader.owner.to_string(),
            client: leader.client.as_ref().map(ClientFields::of),
            fence: leader.fence.get(),
            value: leader.value.clone(),
            since: seconds_since_1970(leader.since),
        }
    }
}

impl LeaderChangeFields {
    fn of(change: LeaderChange) -> Self {
        let (leader, error) = match change {
            LeaderChange::Leads(leader) => (Some(LeaderFields::of(&leader)), None),
            LeaderChange::Unknown(error) => (None, Some(ErrorFields::from(&error))),
            _ => (None, None),
        };
        Self { leader, error }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
