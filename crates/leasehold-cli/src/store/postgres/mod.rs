//! A PostgreSQL server.

mod doctor;

use std::time::Duration;

use leasehold::store::LockRequest;
use leasehold_postgres::{Initialized, PostgresStore};
use serde_json::json;

use crate::output::failure::Failure;
use crate::output::report::Report;
use crate::runtime::runtime;
#[cfg(feature = "redis")]
use crate::store::Quorum;
use crate::store::backend::{Backend, Opened, Prepared};

impl Backend for PostgresStore {
    fn open(&self) -> Result<Opened, Failure> {
        Ok(Opened {
            members: vec![self.to_string()],
            store: self.clone().into(),
            reader: None,
            descriptors: None,
        })
    }

    fn examine(&self, limit: Duration) -> Result<Report, Failure> {
        let found = runtime()?.block_on(Self::examine(self, limit));
        Ok(doctor::report(self.to_string(), found.as_ref()))
    }

    fn prepare(&self) -> Result<Prepared, Failure> {
        let runtime = runtime()?;
        let done = runtime.block_on(self.init())?;
        let mut prepared = prepared(self, done);
        // An error says nothing about the schema, which is there.
        if let Ok(found) = runtime.block_on(Self::examine(self, LockRequest::LIMIT_MAX))
            && !found.stores_all_names()
        {
            prepared.text += &format!(
                "the database has the encoding {}, so names with characters that it lacks are refused\n",
                found.encoding
            );
        }
        Ok(prepared)
    }

    #[cfg(feature = "redis")]
    fn quorum(&self) -> Result<Quorum, Failure> {
        Err(Failure::usage(
            "the store is a PostgreSQL server, which is no quorum; name Redis servers, for example --store \
             redis://a,redis://b,redis://c",
        ))
    }
}

fn prepared(store: &PostgresStore, done: Initialized) -> Prepared {
    let (text, before) = match done {
        Initialized::Created => (format!("created the schema in {store}\n"), None),
        Initialized::Upgraded(version) => (
            format!(
                "changed the schema in {store} from version {version} to {}\n",
                PostgresStore::SCHEMA_VERSION
            ),
            Some(version),
        ),
        Initialized::Current => (
            format!(
                "nothing to do: the schema in {store} has version {}\n",
                PostgresStore::SCHEMA_VERSION
            ),
            Some(PostgresStore::SCHEMA_VERSION),
        ),
    };
    let json = json!({
        "store": store.to_string(),
        "schema_version": PostgresStore::SCHEMA_VERSION,
        "version_before": before,
    });
    Prepared { text, json }
}
