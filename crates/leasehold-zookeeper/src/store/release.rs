//! Frees a lock, or leaves its queue.

use leasehold::Error;
use leasehold::store::{LockRequest, ReleaseReply};

use super::questions::find;
use super::refusal::refused;
use super::session::{LocksInner, Place};
use crate::client::{Code, Connection};

impl LocksInner {
    /// Deletes the node of the owner. It is gone, too, once the session that created it is over.
    pub(super) async fn release(&self, request: &LockRequest) -> Result<ReleaseReply, Error> {
        let Some(place) = self.place(request.owner) else {
            return Ok(ReleaseReply::WasLost);
        };
        let mut is_gone = false;
        if self.server.number() == Some(place.session) {
            let connection = self.connection_for(request).await?;
            if connection.session == place.session {
                is_gone = self.try_release(&connection, request, &place).await?;
            }
        }
        self.forget(request);
        Ok(match place.is_granted && is_gone {
            true => ReleaseReply::Released,
            false => ReleaseReply::WasLost,
        })
    }

    /// Deletes the node of the place. Returns whether it was there.
    async fn try_release(
        &self,
        connection: &Connection,
        request: &LockRequest,
        place: &Place,
    ) -> Result<bool, Error> {
        let folder = self.paths(&request.key).lock;
        let name = match &place.node {
            Some(name) => name.clone(),
            None => match find(connection, &folder, request.owner, false).await? {
                Some(name) => name,
                None => return Ok(false),
            },
        };
        let path = format!("{folder}/{name}");
        match connection.delete(&path).await? {
            Ok(_) => Ok(true),
            Err(Code::NO_NODE) => {
                self.open_broken(connection, request).await?;
                Ok(false)
            }
            Err(code) => Err(refused(&path, code)),
        }
    }

    /// Deletes the node that keeps a broken lock closed: its owner says that it has ended.
    async fn open_broken(
        &self,
        connection: &Connection,
        request: &LockRequest,
    ) -> Result<(), Error> {
        let folder = self.paths(&request.key).lock;
        if let Some(name) = find(connection, &folder, request.owner, true).await? {
            let path = format!("{folder}/{name}");
            // If another client removed it meanwhile, the lock is open as well.
            let _ = connection.delete(&path).await?;
        }
        Ok(())
    }
}
