//! Redis servers: one, or a quorum of several.

mod doctor;
mod quorum;

use leasehold_redis::RedisStore;

use crate::config::Addresses;
use crate::output::failure::Failure;
use crate::output::report::Report;
use crate::runtime::runtime;
use crate::store::backend::{Backend, Opened};

pub(crate) use quorum::Quorum;

/// The servers at these addresses.
#[derive(Debug)]
pub(super) struct RedisServers<'a>(pub(super) &'a Addresses);

impl RedisServers<'_> {
    fn store(&self) -> Result<RedisStore, Failure> {
        let urls = &self.0.urls;
        let store = RedisStore::new(urls).map_err(|error| match urls.as_slice() {
            [only] if !is_server(only) => {
                Failure::usage(format!("{error}, or file:///folder for files"))
            }
            _ => error.into(),
        });
        self.0.blame(store)
    }
}

impl Backend for RedisServers<'_> {
    fn open(&self) -> Result<Opened, Failure> {
        let store = self.store()?;
        Ok(Opened {
            members: store.member_ids().map(ToString::to_string).collect(),
            store: store.into(),
            descriptors: None,
        })
    }

    fn examine(&self) -> Result<Report, Failure> {
        // For its name only; sends nothing.
        let store = self.store()?.to_string();
        runtime()?.block_on(doctor::report(self.0, store))
    }

    fn quorum(&self) -> Result<Quorum, Failure> {
        let store = self.store()?;
        Ok(Quorum::new(store, self.0.urls.clone()))
    }
}

/// Whether the address has a scheme of a server.
fn is_server(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    matches!(
        scheme,
        Some("redis" | "rediss" | "valkey" | "valkeys" | "unix")
    )
}
