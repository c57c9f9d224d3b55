use std::path::Path;
use std::time::Duration;

use leasehold::store::background::{blocking, spawn};
use leasehold::store::{
    Attempt, BoxFuture, Claim, Grant, Held, Inspection, Records, Release, Renewal, Session,
    SessionContext, Term, Wait,
};
use leasehold::{Error, ErrorKind};
use tokio_util::task::TaskTracker;

use super::{FileStore, Inner, renewal};
use crate::locking::attempt::{self, AttemptProgress, Stage};
use crate::locking::table::ClaimId;

/// The locks of one client.
#[derive(Debug)]
pub(super) struct FileSession {
    pub(super) store: FileStore,
    pub(super) context: SessionContext,
    /// The waiters that are about to leave.
    leaving: TaskTracker,
}

impl FileSession {
    pub(super) fn new(store: FileStore, context: SessionContext) -> Self {
        let leaving = TaskTracker::new();
        // It only counts; once closed, it can be waited for whenever it is empty.
        leaving.close();
        Self {
            store,
            context,
            leaving,
        }
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, Error> {
        let Inner {
            directory,
            table,
            waits,
        } = &*self.store.0;
        let env = self.context.env();
        let (id, is_wait) = (ClaimId::of(claim), claim.wait == Wait::Queued);
        let mut guard = table.lock_claim(&id).await;
        if let Some(fence) = self.still_held(&id, claim).await? {
            return Ok(Attempt::Granted(Grant::new(
                fence,
                Term::endless(env.clock.now()),
            )));
        }
        let kept = is_wait.then(|| waits.take(&id)).flatten();
        let give_up = env.clock.now() + PATIENCE_WITH_OTHERS;
        let mut stage = Stage::Try(kept);
        loop {
            let (directory, wanted) = (directory.clone(), claim.clone());
            let waits = is_wait.then(|| waits.clone());
            let now = env.clock.now();
            let work = move || {
                let watch = |path: &Path| waits.as_ref()?.watch(path);
                attempt::go_on(&directory, &wanted, stage, now, watch)
            };
            // If this future is dropped, the work goes on, and its result is dropped, which frees
            // the lock; only then, by the order within the pair, does a release get its turn.
            let (step, back) = blocking(move || (work(), guard)).await?;
            guard = back;
            match step? {
                AttemptProgress::Busy(busy, open) => {
                    if is_wait {
                        self.store.0.waits.keep(id, open);
                    }
                    return Ok(Attempt::Busy(busy));
                }
                AttemptProgress::Granted(lock) => {
                    let fence = lock.fence;
                    table.keep(id, lock);
                    return Ok(Attempt::Granted(Grant::new(
                        fence,
                        Term::endless(env.clock.now()),
                    )));
                }
                AttemptProgress::Later(next) if env.clock.now() < give_up => stage = next,
                AttemptProgress::Later(_) => {
                    return Err(others_are_stuck(&self.store.lock_file(&claim.key)));
                }
            }
            let [least, most] = PAUSE_FOR_OTHERS;
            let soon = env.clock.now() + env.random_span(least, most);
            env.clock.sleep_until(soon).await;
        }
    }

    /// The fence of a claim that holds already: a resend of what was granted.
    async fn still_held(
        &self,
        id: &ClaimId,
        claim: &Claim,
    ) -> Result<Option<leasehold::Fence>, Error> {
        let Some(held) = self.store.0.table.held(id) else {
            return Ok(None);
        };
        if held.mode != claim.mode {
            let message = format!(
                "this attempt holds the lock in {} mode: {} mode needs an attempt of its own",
                held.mode, claim.mode
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let fence = held.fence;
        if blocking(move || held.still_excludes()).await?? {
            return Ok(Some(fence));
        }
        self.store.0.table.remove(id);
        Ok(None)
    }

    async fn free(&self, claim: &Claim) -> Result<Release, Error> {
        let table = &self.store.0.table;
        let id = ClaimId::of(claim);
        let guard = table.lock_claim(&id).await;
        let Some(held) = table.remove(&id) else {
            return Ok(Release::WasLost);
        };
        let work = move || {
            let existed = held.still_excludes();
            held.lock.free();
            (existed, guard)
        };
        let (existed, _turn) = blocking(work).await?;
        Ok(match existed {
            Ok(false) => Release::WasLost,
            // It is free in any case, also where the name could not be looked up.
            Ok(true) | Err(_) => Release::Released,
        })
    }
}

impl Session for FileSession {
    fn acquire<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Attempt, Error>> {
        Box::pin(async move { self.attempt(claim).await.map_err(self.store.at(&claim.key)) })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<Renewal>> {
        Box::pin(renewal::renew(
            &self.store.0.table,
            leases,
            self.context.env().clock.now(),
        ))
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Release, Error>> {
        Box::pin(async move { self.free(claim).await.map_err(self.store.at(&claim.key)) })
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        // A release is over when it is answered.
        Box::pin(self.leaving.wait())
    }

    fn wait<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let (waits, env) = (&self.store.0.waits, self.context.env());
            match claim.wait {
                Wait::Queued => waits.wait(&ClaimId::of(claim), env).await,
                Wait::None | Wait::Barging => env.poll_pause().await,
            }
        })
    }

    fn leave(&self, claim: &Claim) {
        if claim.wait != Wait::Queued {
            return;
        }
        let waiter = ClaimId::of(claim);
        let (table, waits) = (self.store.0.table.clone(), self.store.0.waits.clone());
        spawn(self.leaving.track_future(async move {
            // An attempt that was broken off may still be about to keep something.
            let guard = table.lock_claim(&waiter).await;
            if let Some(kept) = waits.take(&waiter) {
                let _ = blocking(move || (drop(kept), guard)).await;
            }
        }));
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
