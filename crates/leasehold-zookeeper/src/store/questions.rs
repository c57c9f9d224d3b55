//! What several requests ask the server.

use std::time::Duration;

use leasehold::look::Owner;
use leasehold::store::Term;
use leasehold::{Error, ErrorKind};

use super::refusal::refused;
use crate::client::{self, Code, Connection};
use crate::queue::{Kind, Node, Queue};

/// Returns the term of a lease that lives as long as the session.
pub(super) fn term(
    connection: &Connection,
    ttl: Duration,
    proof: &client::Answer<client::Effects>,
) -> Term {
    let sent = proof.sent;
    let left = proof
        .lives_until
        .map_or(Duration::ZERO, |until| until.since(sent));
    Term::new(sent, ttl.min(left).min(connection.usable()))
}

/// Returns the data of a node; `None` if it is gone.
pub(super) async fn data_of(
    connection: &Connection,
    path: &str,
    watch: bool,
) -> Result<Option<Vec<u8>>, Error> {
    let mut batch = connection.batch();
    let data = batch.data(path, watch);
    batch.send();
    match data.answer().await? {
        Ok(answer) => Ok(Some(answer.value.0)),
        Err(Code::NO_NODE) => Ok(None),
        Err(code) => Err(refused(path, code)),
    }
}

/// Returns whether a node is still there, and sets a watch of its end. A node that ends with its session has no children,
/// so no other change of it notifies.
pub(super) async fn watch_end(connection: &Connection, path: &str) -> Result<bool, Error> {
    let mut batch = connection.batch();
    let children = batch.children(path, true);
    batch.send();
    match children.answer().await? {
        Ok(_) => Ok(true),
        Err(Code::NO_NODE) => Ok(false),
        Err(code) => Err(refused(path, code)),
    }
}

/// Returns the name of the node that `owner` has in the queue of a lock, or that keeps the lock closed for its broken lease.
pub(super) async fn find(
    connection: &Connection,
    folder: &str,
    owner: Owner,
    is_closed: bool,
) -> Result<Option<String>, Error> {
    let mut batch = connection.batch();
    batch.sync();
    let children = batch.children(folder, false);
    batch.send();
    let names = match children.answer().await? {
        Ok(answer) => answer.value,
        Err(Code::NO_NODE) => return Ok(None),
        Err(code) => return Err(refused(folder, code)),
    };
    let mut nodes = names
        .iter()
        .filter_map(|name| Node::parse(name).ok().flatten());
    let own = nodes.find(|node| {
        node.owner == Some(owner) && matches!(node.kind, Kind::Closed { .. }) == is_closed
    });
    Ok(own.map(|node| node.name))
}

/// Reads the queue from the children of its folder.
pub(super) fn read_queue(
    folder: &str,
    answer: client::Answered<Vec<String>>,
) -> Result<Queue, Error> {
    let names = match answer {
        Ok(answer) => answer.value,
        Err(Code::NO_NODE) => Vec::new(),
        Err(code) => return Err(refused(folder, code)),
    };
    Queue::read(&names).map_err(|foreign| {
        let text = format!(
            "{folder} has the node {:?} of another library, which would not see this lock; use another name, \
             Curator's InterProcessMutex, or kazoo's Lock",
            foreign.0
        );
        Error::new(ErrorKind::IncompatibleKey, text)
    })
}
