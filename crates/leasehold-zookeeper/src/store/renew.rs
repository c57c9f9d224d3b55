//! Renews leases. The connection keeps the session alive by itself. A renewal proves that it lives, and that the locks
//! are still there.

use leasehold::LostReason;
use leasehold::store::{Held, RenewReply};
use leasehold::{Error, Mode};

use super::node_data::{NodeData, read_break};
use super::questions::{data_of, term};
use super::refusal::refused;
use super::session::{LocksInner, Place};
use crate::client::{self, Code, Connection, Op, Pending};

impl LocksInner {
    pub(super) async fn renew(&self, leases: &[Held]) -> Vec<RenewReply> {
        if leases.is_empty() {
            return Vec::new();
        }
        let mut renewed = self.try_renew(leases).await;
        if matches!(&renewed, Err(error) if error.is_unreachable()) {
            // The session moves to another server in time.
            renewed = self.try_renew(leases).await;
        }
        let unknown = |error: Error| vec![RenewReply::Unknown(error); leases.len()];
        renewed.unwrap_or_else(unknown)
    }

    async fn try_renew(&self, leases: &[Held]) -> Result<Vec<RenewReply>, Error> {
        let connection = self.connection_for(&leases[0].request).await?;
        // A transaction that changes nothing. The nodes are looked at after it, so they existed when the session was
        // known to live.
        let mut batch = connection.batch();
        let proof = batch.add(
            &Op::Multi(vec![Op::Check(self.root())]),
            client::transaction,
        );
        let asked: Vec<_> = leases
            .iter()
            .map(|lease| self.ask(&connection, &mut batch, lease))
            .collect();
        batch.send();
        let refused = |(_, code)| refused(self.root(), code);
        let proof = client::committed(proof.answer().await?).map_err(refused)?;
        let mut replies = Vec::with_capacity(leases.len());
        for (lease, asked) in leases.iter().zip(asked) {
            let renewed = self.renewed(&connection, lease, asked).await;
            replies.push(match renewed {
                Ok(None) => RenewReply::Renewed(term(&connection, lease.request.ttl, &proof)),
                Ok(Some(reason)) => RenewReply::Lost(reason),
                Err(error) => RenewReply::Unknown(error),
            });
        }
        Ok(replies)
    }

    /// Asks whether the node of a lease is there; `None` if there is no node that could hold the lock.
    fn ask(
        &self,
        connection: &Connection,
        batch: &mut client::Batch<'_>,
        lease: &Held,
    ) -> Option<Pending<()>> {
        let (_, path) = self.node_of(connection, lease)?;
        Some(batch.add(&Op::Exists(&path), client::nothing))
    }

    /// Returns the node of a lease in the session of this connection.
    fn node_of(&self, connection: &Connection, lease: &Held) -> Option<(Place, String)> {
        let place = self.place(lease.request.owner)?;
        let is_there = place.is_granted && place.session == connection.session;
        let name = place.node.clone().filter(|_| is_there)?;
        let path = format!("{}/{name}", self.paths(&lease.request.key).lock);
        Some((place, path))
    }

    /// Returns why a lease is lost; `None` if it is not.
    async fn renewed(
        &self,
        connection: &Connection,
        lease: &Held,
        asked: Option<Pending<()>>,
    ) -> Result<Option<LostReason>, Error> {
        let Some(asked) = asked else {
            return self.reason(connection, lease).await.map(Some);
        };
        match asked.answer().await? {
            Ok(_) => self.downgrade(connection, lease).await,
            Err(Code::NO_NODE) => self.reason(connection, lease).await.map(Some),
            Err(code) => Err(refused(lease.request.key.as_str(), code)),
        }
    }

    /// Notes in the node that the lock is shared, if it was exclusive and the lease is for shared mode now. Waiting
    /// readers hear of the change.
    async fn downgrade(
        &self,
        connection: &Connection,
        lease: &Held,
    ) -> Result<Option<LostReason>, Error> {
        let Some((place, path)) = self.node_of(connection, lease) else {
            return Ok(None);
        };
        let is_exclusive = path.contains("-w-lock-");
        if lease.request.mode != Mode::Shared || !is_exclusive || place.is_downgraded {
            return Ok(None);
        }
        let data = NodeData::of(&lease.request, connection.timeout)
            .granted(lease.fence)
            .shared()
            .to_bytes()?;
        let op = Op::SetData(&path, &data, client::ANY);
        match connection.ask(&op, client::nothing).await? {
            Ok(_) => {
                self.change(lease.request.owner, |place| place.is_downgraded = true);
                Ok(None)
            }
            Err(Code::NO_NODE) => self.reason(connection, lease).await.map(Some),
            Err(code) => Err(refused(&path, code)),
        }
    }

    /// Returns why the node of a lease is gone.
    async fn reason(&self, connection: &Connection, lease: &Held) -> Result<LostReason, Error> {
        let path = self.paths(&lease.request.key).broken;
        let record = data_of(connection, &path, false).await?;
        let record = record.map(|data| read_break(&data)).transpose()?;
        let is_broken = record.is_some_and(|record| record.owner == lease.request.owner);
        Ok(if is_broken {
            LostReason::Broken
        } else {
            LostReason::Gone
        })
    }
}
