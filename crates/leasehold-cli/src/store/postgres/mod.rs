//! A PostgreSQL server.

mod doctor;

use leasehold_postgres::{Initialized, PostgresStore};
use serde_json::json;

use crate::config::{Addresses, default_password};
use crate::output::failure::Failure;
use crate::output::report::Report;
use crate::runtime::runtime;
#[cfg(feature = "redis")]
use crate::store::Quorum;
use crate::store::backend::{Backend, Opened, Prepared};

/// The server at this address, the only one of its list.
#[derive(Debug)]
pub(super) struct PostgresServer<'a>(pub(super) &'a Addresses);

impl PostgresServer<'_> {
    fn store(&self) -> Result<PostgresStore, Failure> {
        self.0.blame(self.read())
    }

    fn read(&self) -> Result<PostgresStore, Failure> {
        let url = match self.0.urls.as_slice() {
            [url] if url.matches("://").count() == 1 => url,
            _ => {
                return Err(Failure::usage(
                    "several PostgreSQL servers are no quorum; name one, or a primary and its standbys as postgres://a,b/app",
                ));
            }
        };
        let store = PostgresStore::new(url)?;
        // PGPASSWORD as in all clients of PostgreSQL.
        let password = default_password()?;
        Ok(
            match password.or_else(|| std::env::var("PGPASSWORD").ok()) {
                Some(password) => store.default_password(password),
                None => store,
            },
        )
    }
}

impl Backend for PostgresServer<'_> {
    fn open(&self) -> Result<Opened, Failure> {
        let store = self.store()?;
        Ok(Opened {
            members: vec![store.to_string()],
            store: store.into(),
            descriptors: None,
        })
    }

    fn examine(&self) -> Result<Report, Failure> {
        let store = self.store()?;
        let found = runtime()?.block_on(store.examine());
        Ok(doctor::report(store.to_string(), found.as_ref()))
    }

    fn prepare(&self) -> Option<Result<Prepared, Failure>> {
        let prepared = self.store().and_then(|store| {
            let done = runtime()?.block_on(store.init())?;
            Ok(prepared(&store, done))
        });
        Some(prepared)
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
