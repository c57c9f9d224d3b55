use std::sync::Arc;

use leasehold::store::background::blocking;
use leasehold::store::{
    AcquireError, BoxFuture, Busy, Grant, Held, Inspection, LockRequest, Progress, Records,
    ReleaseReply, RenewReply, Session, SessionContext, Term,
};
use leasehold::{Error, Fence};

use super::{FileStore, renewal};
use crate::locking::attempt::Stage;
use crate::locking::attempts::{Attempted, Attempts};
use crate::locking::kept_open::KeptOpen;
use crate::locking::notifications::Notifications;
use crate::locking::table::RequestId;
use crate::locking::waiting::WaitQueues;
use crate::locking::writer_yield::WriterYield;

/// The locks of one client.
#[derive(Debug)]
pub(super) struct FileSession {
    pub(super) store: FileStore,
    pub(super) context: SessionContext,
    queues: Arc<WaitQueues>,
}

impl FileSession {
    pub(super) fn new(store: FileStore, context: SessionContext) -> Self {
        let attempts = Attempts {
            directory: Arc::clone(&store.0.directory),
            table: Arc::clone(&store.0.table),
            env: context.env().clone(),
        };
        let notifications =
            Notifications::new(store.0.source, context.clone(), Arc::clone(&store.0.table));
        Self {
            queues: WaitQueues::new(Arc::new(attempts), Arc::new(notifications), context.clone()),
            store,
            context,
        }
    }

    async fn take(
        &self,
        request: &Arc<LockRequest>,
        progress: &Progress<'_>,
    ) -> Result<Grant, AcquireError> {
        let (mut open, mut first) = (None, None);
        if request.waits {
            first = self.queues.first_try(request);
        }
        if !request.waits || first.is_some() {
            match self.try_once(request).await? {
                Tried::Granted(fence) => return Ok(self.grant(fence)),
                Tried::Busy(busy, _) if !request.waits => return Err(AcquireError::Busy(busy)),
                Tried::Busy(busy, file) => {
                    progress.busy(busy);
                    open = Some(file);
                }
            }
        }
        let waiting = self.queues.wait(request, open, first, progress);
        Ok(self.grant(waiting.await?))
    }

    async fn try_once(&self, request: &Arc<LockRequest>) -> Result<Tried, Error> {
        let begin = Stage::Try(None, WriterYield::default());
        let attempt = self.queues.attempts.attempt(request, begin, |_| None);
        Ok(match attempt.await? {
            Attempted::Busy(busy, open) => Tried::Busy(busy, open),
            Attempted::Granted(fence, _) => Tried::Granted(fence),
        })
    }

    fn grant(&self, fence: Fence) -> Grant {
        let notifications = &self.queues.notifications;
        notifications.watch_folder(self.store.0.directory.path());
        Grant::new(fence, Term::endless(self.context.env().clock.now()))
    }

    async fn free(&self, request: &LockRequest) -> Result<ReleaseReply, Error> {
        let table = &self.store.0.table;
        let id = RequestId::of(request);
        let guard = table.serialize(&id).await;
        let Some(held) = table.remove(&id) else {
            self.queues.leave(request);
            return Ok(ReleaseReply::WasLost);
        };
        let work = move || {
            let existed = held.still_excludes();
            held.lock.free();
            (existed, guard)
        };
        let (existed, _turn) = blocking(work).await?;
        Ok(match existed {
            Ok(false) => ReleaseReply::WasLost,
            // It is free in any case, also where the name could not be looked up.
            Ok(true) | Err(_) => ReleaseReply::Released,
        })
    }
}

/// The end of the first try.
enum Tried {
    Granted(Fence),
    /// A waiter may keep the file open.
    Busy(Busy, KeptOpen),
}

impl Session for FileSession {
    fn acquire<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        Box::pin(async move {
            let taken = self.context.in_runtime(self.take(request, progress)).await;
            taken.map_err(|error| match error {
                AcquireError::Failed(error) => self.store.at(&request.key)(error).into(),
                busy @ AcquireError::Busy(_) => busy,
            })
        })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<RenewReply>> {
        Box::pin(renewal::renew(
            &self.store.0.table,
            leases,
            self.context.env().clock.now(),
        ))
    }

    fn release<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
    ) -> BoxFuture<'a, Result<ReleaseReply, Error>> {
        Box::pin(async move {
            self.free(request)
                .await
                .map_err(self.store.at(&request.key))
        })
    }

    fn inspection(&self) -> Option<&dyn Inspection> {
        Some(self)
    }

    fn records(&self) -> Option<&dyn Records> {
        Some(self)
    }
}
