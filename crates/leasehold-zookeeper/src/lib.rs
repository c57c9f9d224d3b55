//! Leasehold's store over Apache ZooKeeper: [`ZooKeeperStore`].
#![warn(missing_docs)]

mod client;
mod examine;
mod queue;
mod store;
mod url;

pub use examine::{Examination, ServerFacts, SessionFacts};
pub use store::ZooKeeperStore;
