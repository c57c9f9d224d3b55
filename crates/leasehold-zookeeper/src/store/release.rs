//! Frees a lock, or leaves its queue.

use std::sync::Arc;

use leasehold::store::{BoxFuture, LockRequest, ReleaseReply};
use leasehold::{Error, ErrorKind};

use super::questions::find;
use super::refusal::refused;
use super::session::{Inner, LockSession, Place};
use crate::client::{Code, Connection};

impl LockSession {
    /// Releases in the background, so that a caller that drops the future takes nothing back.
    pub(super) fn start_release(
        &self,
        request: &Arc<LockRequest>,
    ) -> BoxFuture<'static, Result<ReleaseReply, Error>> {
        if self.0.place(request.owner).is_none() {
            return Box::pin(std::future::ready(Ok(ReleaseReply::WasLost)));
        }
        let (inner, request) = (Arc::clone(&self.0), Arc::clone(request));
        let release = async move { inner.release(&request).await };
        let release = self.0.releases.track_future(release);
        self.0.context.spawn_with_answer(release)
    }
}

impl Inner {
    /// Tries until the server answers, or until the session is over, which frees the lock.
    async fn release(&self, request: &LockRequest) -> Result<ReleaseReply, Error> {
        let mut may_be_done = false;
        while let Some(place) = self.place(request.owner) {
            if self.server.number() != Some(place.session) {
                self.forget(request.owner);
                return Ok(ReleaseReply::WasLost);
            }
            let Ok(connection) = self.connection_for(request).await else {
                self.context.env().poll_pause().await;
                continue;
            };
            if connection.session != place.session {
                continue;
            }
            match self.try_release(&connection, request, &place).await {
                Ok(is_gone) => {
                    self.forget(request.owner);
                    let freed = place.is_granted && (is_gone || may_be_done);
                    return Ok(if freed {
                        ReleaseReply::Released
                    } else {
                        ReleaseReply::WasLost
                    });
                }
                Err(error) if error.kind() == ErrorKind::Unreachable => {
                    may_be_done = true;
                    if connection.is_open() {
                        // The server answers, and is not ready.
                        self.context.env().poll_pause().await;
                    }
                }
                Err(error) => return Err(error.with_unknown_effect()),
            }
        }
        Ok(ReleaseReply::WasLost)
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
