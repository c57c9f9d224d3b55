use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leasehold::store::background::blocking;
use leasehold::store::{
    AcquireError, BoxFuture, Busy, Grant, Held, Inspection, LockRequest, Progress, Records,
    ReleaseReply, RenewReply, Session, SessionContext, Term,
};
use leasehold::{Error, ErrorKind, Fence};

use super::{FileStore, Inner, renewal};
use crate::locking::attempt::{self, AttemptProgress, Stage};
use crate::locking::table::RequestId;
use crate::locking::waiters::KeptOpen;

/// The locks of one client.
#[derive(Debug)]
pub(super) struct FileSession {
    pub(super) store: FileStore,
    pub(super) context: SessionContext,
}

impl FileSession {
    async fn take(
        &self,
        request: &Arc<LockRequest>,
        progress: &Progress<'_>,
    ) -> Result<Grant, AcquireError> {
        let (waiters, env) = (&self.store.0.waiters, self.context.env());
        let (mut next, mut open, mut room) = (Arc::clone(request), None, None);
        loop {
            match self.attempt(&next, open.take()).await? {
                Tried::Granted(fence) => {
                    return Ok(Grant::new(fence, Term::endless(env.clock.now())));
                }
                Tried::Busy(busy, _) if !request.waits => return Err(AcquireError::Busy(busy)),
                Tried::Busy(busy, kept) => {
                    progress.busy(busy);
                    if request.is_queued() {
                        room = room.or_else(|| waiters.room(request.mode));
                        open = room.is_some().then_some(kept);
                    }
                }
            }
            waiters.wait(&mut open, env).await;
            next = Arc::new(LockRequest::clone(request).proposed_at(env.clock.wall()));
        }
    }

    async fn attempt(
        &self,
        request: &Arc<LockRequest>,
        open: Option<KeptOpen>,
    ) -> Result<Tried, Error> {
        let Inner {
            directory,
            table,
            waiters,
        } = &*self.store.0;
        let clock = &self.context.env().clock;
        let id = RequestId::of(request);
        let mut guard = table.serialize(&id).await;
        let give_up = clock.now() + PATIENCE_WITH_OTHERS;
        let mut stage = Stage::Try(open);
        loop {
            let (directory, wanted) = (directory.clone(), Arc::clone(request));
            let watchers = request.is_queued().then(|| waiters.clone());
            let now = clock.now();
            let work = move || {
                let watch = |path: &Path| watchers.as_ref()?.watch(path);
                attempt::go_on(&directory, &wanted, stage, now, watch)
            };
            // If this future is dropped, the work goes on, and its result is dropped, which frees
            // the lock; only then, by the order within the pair, does a release get its turn.
            let (step, back) = blocking(move || (work(), guard)).await?;
            guard = back;
            match step? {
                AttemptProgress::Busy(busy, open) => return Ok(Tried::Busy(busy, open)),
                AttemptProgress::Granted(lock) => {
                    let fence = lock.fence;
                    table.keep(id, lock);
                    return Ok(Tried::Granted(fence));
                }
                AttemptProgress::Later(next) if clock.now() < give_up => stage = next,
                AttemptProgress::Later(_) => {
                    return Err(others_are_stuck(&self.store.lock_file(&request.key)));
                }
            }
            let [least, most] = PAUSE_FOR_OTHERS;
            let soon = clock.now() + self.context.env().random_span(least, most);
            clock.sleep_until(soon).await;
        }
    }

    async fn free(&self, request: &LockRequest) -> Result<ReleaseReply, Error> {
        let table = &self.store.0.table;
        let id = RequestId::of(request);
        let guard = table.serialize(&id).await;
        let Some(held) = table.remove(&id) else {
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

/// The end of one attempt.
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

fn others_are_stuck(path: &Path) -> Error {
    let message = format!(
        "another shared holder has been writing its fence to {} for {PATIENCE_WITH_OTHERS:?}: it \
         may be stopped",
        path.display()
    );
    Error::new(ErrorKind::Io, message)
}

/// About as long as a disk takes to write one sector through.
const PAUSE_FOR_OTHERS: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(2)];

const PATIENCE_WITH_OTHERS: Duration = Duration::from_secs(30);
