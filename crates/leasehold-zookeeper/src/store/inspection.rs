//! Shows who holds and who waits.

use leasehold::Key;
use leasehold::clock::WallTime;
use leasehold::look::{Holder, ListedLock, LockListing, Pattern, Waiter};
use leasehold::store::{BoxFuture, Inspection, Ticket};
use leasehold::{Error, Fence};
use std::time::Duration;

use super::node_data::NodeData;
use super::questions::read_queue;
use super::refusal::refused;
use super::session::{LockSession, LocksInner};
use crate::client::{Answer, Code, Connection, Stat};
use crate::queue::{Kind, Node, Queue, key_of};

/// How many questions are sent at once.
const AT_ONCE: usize = 256;

impl Inspection for LockSession {
    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        Box::pin(async move {
            let connection = self.0.connection().await?;
            let mut found = self
                .0
                .look_at(&connection, std::slice::from_ref(key))
                .await?;
            Ok(found.pop().map(|(_, holders)| holders).unwrap_or_default())
        })
    }

    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        Box::pin(async move {
            let connection = self.0.connection().await?;
            self.0.waiters(&connection, key).await
        })
    }

    fn list_locks<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<LockListing, Error>> {
        Box::pin(async move {
            let connection = self.0.connection().await?;
            let names = self.0.children(&connection, &[self.0.root()]).await?;
            let keys = matching(&names, pattern);
            let (mut locks, mut more) = (Vec::new(), false);
            for some in keys.chunks(AT_ONCE) {
                let found = self.0.look_at(&connection, some).await?;
                for (key, holders) in some
                    .iter()
                    .zip(found.into_iter().map(|(_, holders)| holders))
                {
                    if !holders.is_empty() && locks.len() == limit {
                        more = true;
                    } else if !holders.is_empty() {
                        locks.push(ListedLock::new(key.clone(), holders));
                    }
                }
                if more {
                    break;
                }
            }
            Ok(LockListing::new(locks, more))
        })
    }
}

impl LocksInner {
    /// Returns the names of the nodes in some folders.
    pub(super) async fn children(
        &self,
        connection: &Connection,
        folders: &[impl AsRef<str>],
    ) -> Result<Vec<String>, Error> {
        let mut batch = connection.batch();
        batch.sync();
        let ask = |folder| batch.children(AsRef::<str>::as_ref(folder), false);
        let asked: Vec<_> = folders.iter().map(ask).collect();
        batch.send();
        let mut names = Vec::new();
        for (folder, asked) in folders.iter().zip(asked) {
            match asked.answer().await? {
                Ok(answer) => names.extend(answer.value),
                Err(Code::NO_NODE) => {}
                Err(code) => return Err(refused(folder.as_ref(), code)),
            }
        }
        Ok(names)
    }

    /// Returns the queue and the holders of each key.
    pub(super) async fn look_at(
        &self,
        connection: &Connection,
        keys: &[Key],
    ) -> Result<Vec<(Queue, Vec<Holder>)>, Error> {
        let mut batch = connection.batch();
        batch.sync();
        let folders: Vec<String> = keys.iter().map(|key| self.paths(key).lock).collect();
        let asked: Vec<_> = folders
            .iter()
            .map(|folder| batch.children(folder, false))
            .collect();
        batch.send();
        let mut found = Vec::new();
        for (folder, names) in folders.iter().zip(asked) {
            let mut queue = read_queue(folder, names.answer().await?)?;
            let mut holders = self.holders_in(connection, folder, &queue).await?;
            let first = queue.nodes().first().cloned();
            if let (Some(first), [(data, _)]) = (first, holders.as_slice())
                && data.as_ref().is_some_and(|data| data.shared)
            {
                queue.downgrade(first.name);
                holders = self.holders_in(connection, folder, &queue).await?;
            }
            let holders = holders.into_iter().map(|(_, holder)| holder).collect();
            found.push((queue, holders));
        }
        Ok(found)
    }

    async fn holders_in(
        &self,
        connection: &Connection,
        folder: &str,
        queue: &Queue,
    ) -> Result<Vec<(Option<NodeData>, Holder)>, Error> {
        let nodes: Vec<&Node> = queue.holders().collect();
        let mut batch = connection.batch();
        let asked: Vec<_> = nodes
            .iter()
            .map(|node| batch.data(&format!("{folder}/{}", node.name), false))
            .collect();
        batch.send();
        let mut holders = Vec::new();
        for (node, asked) in nodes.into_iter().zip(asked) {
            match asked.answer().await? {
                Ok(Answer { value, .. }) => {
                    let data = NodeData::read(&value.0);
                    let mut holder =
                        holder(node, data.as_ref(), value.1, connection.about_leader_time());
                    holder.mode = queue.mode(node);
                    holders.push((data, holder));
                }
                // It has left meanwhile.
                Err(Code::NO_NODE) => {}
                Err(code) => return Err(refused(folder, code)),
            }
        }
        Ok(holders)
    }

    /// Returns the path of the node that holds with this fence.
    pub(super) async fn holder_node(
        &self,
        key: &Key,
        fence: Fence,
    ) -> Result<Option<String>, Error> {
        let connection = self.connection().await?;
        let found = self.look_at(&connection, std::slice::from_ref(key)).await?;
        let Some((queue, holders)) = found.into_iter().next() else {
            return Ok(None);
        };
        let holds = |holder: &&Holder| holder.fence == Some(fence) && !holder.broken;
        let owner = holders.iter().find(holds).and_then(|holder| holder.owner);
        let node = queue
            .holders()
            .find(|node| owner.is_some() && node.owner == owner);
        Ok(node.map(|node| format!("{}/{}", self.paths(key).lock, node.name)))
    }

    async fn waiters(&self, connection: &Connection, key: &Key) -> Result<Vec<Waiter>, Error> {
        let found = self.look_at(connection, std::slice::from_ref(key)).await?;
        let Some((queue, _)) = found.into_iter().next() else {
            return Ok(Vec::new());
        };
        let folder = self.paths(key).lock;
        // Waiters of other libraries have no owner, which a waiter shows.
        let nodes: Vec<_> = queue
            .waiters()
            .filter_map(|node| Some((node, node.owner?)))
            .collect();
        let mut batch = connection.batch();
        let asked: Vec<_> = nodes
            .iter()
            .map(|(node, _)| batch.data(&format!("{folder}/{}", node.name), false))
            .collect();
        batch.send();
        let mut waiters = Vec::new();
        for ((node, owner), asked) in nodes.into_iter().zip(asked) {
            let Ok(answer) = asked.answer().await? else {
                continue;
            };
            let since = owner.since();
            let ticket = Ticket {
                since,
                waiter: owner,
            };
            let mut waiter = Waiter::unknown(ticket, node.kind.mode());
            waiter.client = NodeData::read(&answer.value.0).map(|data| data.client);
            waiters.push(waiter);
        }
        Ok(waiters)
    }
}

/// Returns the keys of the nodes with these names that match, in order.
pub(super) fn matching(names: &[String], pattern: &Pattern) -> Vec<Key> {
    let keys = names.iter().filter_map(|name| key_of(name));
    let mut keys: Vec<Key> = keys.filter(|key| pattern.matches(key.as_str())).collect();
    keys.sort();
    keys
}

fn holder(node: &Node, data: Option<&NodeData>, stat: Stat, now: Option<i64>) -> Holder {
    let Some(owner) = node.owner else {
        let mut holder = Holder::unknown(node.kind.mode());
        let millis = u64::try_from(stat.changed_ms).unwrap_or_default();
        holder.since = Some(WallTime::from_micros(millis.saturating_mul(1000)));
        return holder;
    };
    let mut holder = Holder::of(owner, node.kind.mode());
    holder.client = data.map(|data| data.client.clone());
    holder.fence = data.and_then(NodeData::fence);
    if let Kind::Closed { until, .. } = node.kind {
        holder.broken = true;
        let now = now.unwrap_or(stat.changed_ms);
        let left = u64::try_from(until.saturating_sub(now)).unwrap_or_default();
        holder.remaining = Some(Duration::from_millis(left));
    }
    holder
}
