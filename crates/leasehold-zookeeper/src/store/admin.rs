//! Breaks a lock for an operator.

use std::time::Duration;

use leasehold::look::{BreakRecord, BrokenLease, Owner};
use leasehold::store::{Admin, BoxFuture};
use leasehold::{Error, ErrorKind, Key, Mode};

use super::node_data::{NodeData, read_break, to_bytes};
use super::questions::data_of;
use super::refusal::refused;
use super::session::{LockSession, LocksInner};
use crate::client::{self, Code, Connection, Lifetime, Op};
use crate::queue::{Kind, Node, Paths};

impl Admin for LockSession {
    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<BrokenLease, Error>> {
        Box::pin(async move {
            let connection = self.0.connection().await?;
            for _ in 0..TRIES {
                if let Some(broken) = self.0.try_break(&connection, key, record).await? {
                    return Ok(broken);
                }
            }
            let text = format!("{key} changed {TRIES} times while it was to be broken");
            Err(Error::new(ErrorKind::Unreachable, text))
        })
    }

    fn last_break<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<BreakRecord>, Error>> {
        Box::pin(async move {
            let connection = self.0.connection().await?;
            let mut batch = connection.batch();
            batch.sync();
            batch.send();
            let data = data_of(&connection, &self.0.paths(key).broken, false).await?;
            let record = data.map(|data| read_break(&data)).transpose()?;
            let now = self.0.context.env().clock.wall();
            Ok(record.filter(|record| now.distance(record.at) <= BreakRecord::KEPT))
        })
    }
}

/// How often to begin again because the lock changed.
const TRIES: usize = 16;

/// The node of the lease to break.
struct Found {
    owner: Owner,
    node: Node,
    mode: Mode,
    data: Vec<u8>,
}

/// Returns the path of the node that keeps the lock closed until then, in place of the node of its holder.
fn closed_path(paths: &Paths, found: &Found, until: i64) -> String {
    let mode = found.mode;
    let closed = Kind::Closed { mode, until };
    let name = found.node.replaced_by(found.owner, closed);
    format!("{}/{name}", paths.lock)
}

impl LocksInner {
    /// Breaks the lease in one transaction with its record. `None` if something changed meanwhile.
    async fn try_break(
        &self,
        connection: &Connection,
        key: &Key,
        record: &BreakRecord,
    ) -> Result<Option<BrokenLease>, Error> {
        let paths = self.paths(key);
        let Some(found) = self.find_lease(connection, key, record).await? else {
            return Ok(Some(BrokenLease::new(false, None)));
        };
        let held = format!("{}/{}", paths.lock, found.node.name);
        let bytes = to_bytes(record)?;
        let has_record = data_of(connection, &paths.broken, false).await?.is_some();
        let note = if has_record {
            Op::SetData(&paths.broken, &bytes, client::ANY)
        } else {
            Op::Create(&paths.broken, &bytes, Lifetime::Persistent, self.access())
        };
        let until = match found.node.kind {
            _ if record.at_once => None,
            Kind::Closed { until, .. } => Some(until),
            // This request may arrive late, but not after the servers ended this session: they round up its timeout.
            _ => Some(
                self.lease_end(connection, &found.data).await? + millis(connection.timeout * 2),
            ),
        };
        let closed = until.map(|until| closed_path(&paths, &found, until));
        let mut parts = vec![note];
        if closed.as_ref() != Some(&held) {
            parts.push(Op::Delete(&held, client::ANY));
            parts.extend(closed.as_ref().map(|path| self.closed_node(path, &found)));
        }
        match connection.transact(parts).await? {
            Ok(_) => {
                let until = match (until, found.node.kind) {
                    (until, Kind::Closed { .. }) => until,
                    (Some(until), _) => self.shorten(connection, &paths, &found, until).await?,
                    (None, _) => None,
                };
                let rest = until.and_then(|until| rest(connection, until));
                Ok(Some(BrokenLease::new(true, rest)))
            }
            Err((0, Code::NO_NODE)) if !has_record => {
                let folder = paths
                    .broken
                    .rsplit_once('/')
                    .map_or("/", |(folder, _)| folder);
                self.ensure_folder(connection, folder, Lifetime::Persistent)
                    .await?;
                Ok(None)
            }
            Err((_, Code::NO_NODE | Code::NODE_EXISTS)) => Ok(None),
            Err((_, code)) => Err(refused(&paths.broken, code)),
        }
    }

    /// Moves the end of a lock that was closed just now to the latest end of the lease that was broken: it is renewed no more.
    /// Returns the end; `None` if the lock is no longer closed.
    async fn shorten(
        &self,
        connection: &Connection,
        paths: &Paths,
        found: &Found,
        until: i64,
    ) -> Result<Option<i64>, Error> {
        let end = self.lease_end(connection, &found.data).await?;
        let before = closed_path(paths, found, until);
        let after = closed_path(paths, found, end);
        let parts = vec![
            Op::Delete(&before, client::ANY),
            self.closed_node(&after, found),
        ];
        match connection.transact(parts).await? {
            Ok(_) => Ok(Some(end)),
            Err((_, Code::NO_NODE | Code::NODE_EXISTS)) => Ok(None),
            Err((_, code)) => Err(refused(&after, code)),
        }
    }

    fn closed_node<'a>(&self, path: &'a str, found: &'a Found) -> Op<'a> {
        Op::Create(path, &found.data, Lifetime::Persistent, self.access())
    }

    /// Returns the node of the owner of the record, if it holds the lock.
    async fn find_lease(
        &self,
        connection: &Connection,
        key: &Key,
        record: &BreakRecord,
    ) -> Result<Option<Found>, Error> {
        let found = self.look_at(connection, std::slice::from_ref(key)).await?;
        let queue = found
            .into_iter()
            .next()
            .map(|(queue, _)| queue)
            .unwrap_or_default();
        let mut holders = queue.holders();
        let Some(node) = holders.find(|node| node.owner == Some(record.owner)) else {
            return Ok(None);
        };
        let (mode, node) = (queue.mode(node), node.clone());
        let path = format!("{}/{}", self.paths(key).lock, node.name);
        let data = data_of(connection, &path, false).await?;
        let owner = record.owner;
        Ok(data.map(|data| Found {
            owner,
            node,
            mode,
            data,
        }))
    }

    /// Returns when the lease ends if its holder is renewed now, in milliseconds of the leader's clock.
    async fn lease_end(&self, connection: &Connection, data: &[u8]) -> Result<i64, Error> {
        let now = self.ask_time(connection).await?;
        let ttl = NodeData::read(data).map_or(connection.timeout, |data| data.ttl());
        Ok(now.saturating_add(millis(ttl)))
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// Returns how long the lock stays closed.
fn rest(connection: &Connection, until: i64) -> Option<Duration> {
    let left = until.saturating_sub(connection.about_leader_time()?);
    Some(Duration::from_millis(
        u64::try_from(left).unwrap_or_default(),
    ))
}
