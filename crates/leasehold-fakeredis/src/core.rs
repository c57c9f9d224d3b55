use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::clients::{Clients, ConnectionId};
use crate::identity::Identity;
use crate::keyspace::Keyspace;
use crate::reply::Outcome;

/// The state of a server, as commands see it.
#[derive(Debug, Default)]
pub(crate) struct Core {
    pub(crate) keyspace: Keyspace,
    /// The clock, in microseconds. It does not advance within a command or script.
    pub(crate) now_us: u64,
    pub(crate) clients: Clients,
    /// The texts of scripts, by the SHA-1 of each in hexadecimal.
    pub(crate) scripts: BTreeMap<Vec<u8>, Arc<[u8]>>,
    /// The connection whose command runs.
    pub(crate) caller: ConnectionId,
    /// Whether a script runs. Its calls get RESP2 replies.
    pub(crate) in_script: bool,
    pub(crate) identity: Identity,
    /// The commands that the user may not run.
    pub(crate) denied: BTreeSet<String>,
    /// Runs the commands of scripts and transactions.
    pub(crate) runner: Runner,
}

/// Runs a command. The server sets it, because a command that runs others cannot import the table in
/// which it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runner(pub(crate) fn(&mut Core, &[&[u8]]) -> Outcome);

impl Default for Runner {
    fn default() -> Self {
        Self(|_, _| Err("ERR the server does not run".into()))
    }
}

impl Core {
    pub(crate) fn set_now(&mut self, now_us: u64) {
        self.now_us = now_us;
        self.keyspace.now_ms = (now_us / 1000) as i64;
    }

    /// Runs a command of a script or a transaction.
    pub(crate) fn run(&mut self, args: &[&[u8]]) -> Outcome {
        (self.runner.0)(self, args)
    }

    /// Whether scores and pairs are sent in the form of RESP3.
    pub(crate) fn is_resp3(&mut self) -> bool {
        !self.in_script && self.clients.of(self.caller).is_resp3
    }
}
