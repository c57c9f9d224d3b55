//! What Leasehold is compared with: other libraries, and the bare clients of the servers. Those in Rust are workers of this
//! program. Those in other languages obey the same orders.

mod etcd;
mod messages;
mod postgres;
pub(crate) mod programs;
mod redis_crate;
mod rslock;
mod zookeeper;

use std::error::Error;

use crate::error::Fallible;
use crate::worker::{Task, obey};

/// Obeys the orders as a peer in Rust.
pub(crate) async fn run(part: &str, task: &Task) -> Fallible {
    match part {
        "rslock" => obey(rslock::locks(task, true), task).await,
        "rslock-impatient" => obey(rslock::locks(task, false), task).await,
        "crate-list" => obey(redis_crate::poppers(task).await?, task).await,
        "crate" => obey(redis_crate::keys(task, true).await?, task).await,
        "crate-impatient" => obey(redis_crate::keys(task, false).await?, task).await,
        "zookeeper/bare" => obey(zookeeper::bare(task)?, task).await,
        part => match part.split_once('/') {
            Some(("postgres", part)) => postgres::run(part, task).await,
            Some(("etcd", part)) => etcd::run(part, task).await,
            _ => Err(unknown(part)),
        },
    }
}

fn unknown(part: &str) -> Box<dyn Error + Send + Sync> {
    format!("there is no peer {part:?}").into()
}
