//! An ensemble of ZooKeeper.

mod doctor;

use std::time::Duration;

use leasehold_zookeeper::ZooKeeperStore;

use crate::output::failure::Failure;
use crate::output::report::Report;
use crate::runtime::runtime;
#[cfg(feature = "redis")]
use crate::store::Quorum;
use crate::store::backend::{Backend, Opened};

impl Backend for ZooKeeperStore {
    fn open(&self) -> Result<Opened, Failure> {
        Ok(Opened {
            members: self.servers(),
            store: self.clone().into(),
            reader: None,
            descriptors: None,
        })
    }

    fn examine(&self, limit: Duration) -> Result<Report, Failure> {
        let found = runtime()?.block_on(Self::examine(self, limit));
        Ok(doctor::report(self.to_string(), &found))
    }

    #[cfg(feature = "redis")]
    fn quorum(&self) -> Result<Quorum, Failure> {
        Err(Failure::usage(
            "ZooKeeper manages its members itself, in the configuration of its servers",
        ))
    }
}
