use std::collections::BTreeMap;

use crate::sim::history::{Event, What};

/// How many members each client has, and needs.
#[derive(Debug, Default)]
pub(super) struct Majorities(BTreeMap<usize, usize>);

impl Majorities {
    pub(super) fn see(&mut self, event: &Event) {
        if let What::Joined { client, members } = event.what {
            self.0.insert(client, members);
        }
    }

    pub(super) fn of(&self, client: usize) -> usize {
        self.members(client) / 2 + 1
    }

    pub(super) fn members(&self, client: usize) -> usize {
        self.0[&client]
    }
}
