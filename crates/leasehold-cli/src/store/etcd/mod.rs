//! An etcd ensemble.

mod doctor;

use leasehold_etcd::EtcdStore;

use crate::config::Addresses;
use crate::output::failure::Failure;
use crate::output::report::Report;
use crate::runtime::runtime;
#[cfg(feature = "redis")]
use crate::store::Quorum;
use crate::store::backend::{Backend, Opened};

/// The ensemble whose servers these addresses name.
#[derive(Debug)]
pub(super) struct EtcdServers<'a>(pub(super) &'a Addresses);

/// The schemes of its URLs.
pub(super) const SCHEMES: [&str; 2] = ["etcd", "etcds"];

impl EtcdServers<'_> {
    /// One URL names several servers, with commas between them.
    fn store(&self) -> Result<EtcdStore, Failure> {
        self.0.blame(EtcdStore::new(&self.0.urls.join(",")))
    }
}

impl Backend for EtcdServers<'_> {
    fn open(&self) -> Result<Opened, Failure> {
        let store = self.store()?;
        Ok(Opened {
            members: store.servers().collect(),
            store: store.into(),
            descriptors: None,
        })
    }

    fn examine(&self) -> Result<Report, Failure> {
        let store = self.store()?;
        let facts = runtime()?.block_on(store.examine());
        Ok(doctor::report(store.to_string(), &facts))
    }

    #[cfg(feature = "redis")]
    fn quorum(&self) -> Result<Quorum, Failure> {
        Err(Failure::usage(
            "an etcd ensemble needs no initialization, and knows its members itself; use `etcdctl member`",
        ))
    }
}
