//! Distributed locks on a PostgreSQL server.
//!
//! [`PostgresStore`] takes locks. Its rows are the locks and their queues, so the data of an application in the same
//! database can be written under a lock in one transaction: [`PostgresStore::holds`].
//!
//! ```no_run
//! # async fn example() -> Result<(), leasehold::Error> {
//! use leasehold::Client;
//! use leasehold_postgres::PostgresStore;
//!
//! let store = PostgresStore::new("postgres://locks:secret@db.example/app")?;
//! store.init().await?;
//! let locks = Client::new(store);
//! let guard = locks.lock("invoices/2026-11").acquire().await?;
//! println!("fence {}", guard.fence());
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! `docs/stores/postgres.md` in the repository says what to run, what the store promises, and what a failover does.
#![forbid(unsafe_code)]

mod admin;
mod client_text;
mod connection;
mod examine;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod inspection;
mod password_file;
mod records;
mod schema;
mod server;
mod session;
mod store;
mod url;

pub use examine::Examination;
pub use leasehold_credentials::{Password, rustls};
pub use schema::Initialized;
pub use store::PostgresStore;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
