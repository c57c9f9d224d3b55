//! Redis servers: one, or a quorum of several.

mod doctor;

use std::sync::Arc;
use std::time::Duration;

use leasehold_redis::RedisStore;

use crate::output::failure::Failure;
use crate::output::report::Report;
use crate::runtime::runtime;
use crate::store::Quorum;
use crate::store::backend::{Backend, Opened};

/// Redis servers, and their addresses.
#[derive(Debug)]
pub(super) struct RedisServers<'a> {
    pub(super) store: RedisStore,
    pub(super) urls: &'a [String],
}

impl Backend for RedisServers<'_> {
    fn open(&self) -> Result<Opened, Failure> {
        let store = self.store.clone();
        Ok(Opened {
            members: store
                .member_ids()
                .map(|id| id.as_str().to_owned())
                .collect(),
            // Unlike a conversion, it does not warn again.
            reader: Some(Arc::new(store.clone().read_only())),
            store: store.into(),
            descriptors: None,
        })
    }

    fn examine(&self, limit: Duration) -> Result<Report, Failure> {
        runtime()?.block_on(doctor::report(&self.store, limit))
    }

    fn is_quorum(&self) -> bool {
        self.urls.len() >= Quorum::LEAST
    }

    fn copies(&self) -> usize {
        self.urls.len()
    }

    fn quorum(&self) -> Result<Quorum, Failure> {
        Ok(Quorum::new(self.store.clone(), self.urls.to_vec()))
    }
}
