//! An ensemble of ZooKeeper.

mod doctor;

use leasehold_zookeeper::ZooKeeperStore;

use crate::config::Addresses;
use crate::output::failure::Failure;
use crate::output::report::Report;
use crate::runtime::runtime;
#[cfg(feature = "redis")]
use crate::store::Quorum;
use crate::store::backend::{Backend, Opened};

/// The ensemble at this address, the only one of the addresses.
#[derive(Debug)]
pub(super) struct Ensemble<'a>(pub(super) &'a str, pub(super) &'a Addresses);

impl Ensemble<'_> {
    fn store(&self) -> Result<ZooKeeperStore, Failure> {
        self.1.blame(ZooKeeperStore::new(self.0))
    }
}

impl Backend for Ensemble<'_> {
    fn open(&self) -> Result<Opened, Failure> {
        let store = self.store()?;
        Ok(Opened {
            members: store.servers(),
            store: store.into(),
            descriptors: None,
        })
    }

    fn examine(&self) -> Result<Report, Failure> {
        let store = self.store()?;
        let found = runtime()?.block_on(store.examine());
        Ok(doctor::report(store.to_string(), &found))
    }

    #[cfg(feature = "redis")]
    fn quorum(&self) -> Result<Quorum, Failure> {
        Err(Failure::usage(
            "ZooKeeper manages its members itself, in the configuration of its servers",
        ))
    }
}
