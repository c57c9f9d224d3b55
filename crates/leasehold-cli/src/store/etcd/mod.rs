//! An etcd ensemble.

mod doctor;

use std::time::Duration;

use leasehold_etcd::EtcdStore;

use crate::output::failure::Failure;
use crate::output::report::Report;
use crate::runtime::runtime;
#[cfg(feature = "redis")]
use crate::store::Quorum;
use crate::store::backend::{Backend, Opened};

impl Backend for EtcdStore {
    fn open(&self) -> Result<Opened, Failure> {
        Ok(Opened {
            members: self.servers().collect(),
            store: self.clone().into(),
            reader: None,
            descriptors: None,
        })
    }

    fn examine(&self, limit: Duration) -> Result<Report, Failure> {
        let facts = runtime()?.block_on(Self::examine(self, limit));
        Ok(doctor::report(self.to_string(), &facts))
    }

    #[cfg(feature = "redis")]
    fn quorum(&self) -> Result<Quorum, Failure> {
        Err(Failure::usage(
            "an etcd ensemble manages its members itself; use `etcdctl member`",
        ))
    }
}
