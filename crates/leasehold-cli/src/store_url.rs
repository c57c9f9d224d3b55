//! The only list of stores.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use leasehold::{Client, Owner, Store};

use crate::config::Choice;
use crate::failure::Failure;
use crate::output::Output;

/// A store that was chosen and whose address makes sense. Nothing was sent to it yet.
#[derive(Debug)]
pub(crate) struct OpenStore {
    store: Arc<dyn Store>,
}

impl OpenStore {
    pub(crate) fn open(choice: &Choice) -> Result<Self, Failure> {
        let _ = choice;
        Ok(Self {
            store: Arc::new(leasehold::MemoryStore::new()),
        })
    }
    pub(crate) fn speak_up(&self, _output: &Output) {}
    pub(crate) fn client(&self) -> Client {
        Client::builder(Arc::clone(&self.store))
            .program("leasehold")
            .build()
    }
    pub(crate) fn members(&self) -> String {
        String::new()
    }
    pub(crate) fn descriptor(&self, _owner: Owner) -> Option<OwnedFd> {
        None
    }
}
