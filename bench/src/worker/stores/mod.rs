//! The subjects on PostgreSQL, etcd, and ZooKeeper.

mod etcd;
mod messages;
mod postgres;
mod znodes;
mod zookeeper;

use std::sync::Arc;

use leasehold::store::Store;
use leasehold::{Client, Error};

use super::task::Task;
use super::{held, libraries, obey};
use crate::error::Fallible;

/// Obeys the orders as a part of a store.
pub(super) async fn run(store: &str, part: &str, task: &Task) -> Fallible {
    match store {
        "postgres" => postgres::run(part, task).await,
        "etcd" => etcd::run(part, task).await,
        "zookeeper" => zookeeper::run(part, task).await,
        _ => Err(format!("there is no store {store:?}").into()),
    }
}

/// Obeys the orders as Leasehold, in one of its parts.
async fn leasehold<S: Into<Arc<dyn Store>>>(
    part: &str,
    task: &Task,
    store: impl Fn() -> Result<S, Error>,
) -> Fallible {
    match part {
        "leasehold" => obey(libraries::of_one(&Client::new(store()?), task), task).await,
        "leasehold-each" => {
            let client = || Ok(Client::new(store()?));
            obey(libraries::of_each(client, task)?, task).await
        }
        "leasehold-held" => held::obey(&Client::new(store()?), task).await,
        _ => Err(format!("there is no part {part:?}").into()),
    }
}
