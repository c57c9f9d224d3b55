use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leasehold::env::Env;
use leasehold::store::background::blocking;
use leasehold::store::{Busy, LockRequest};
use leasehold::{Error, ErrorKind, Fence};

use crate::directory::Directory;
use crate::kernel::listener::Watch;
use crate::locking::attempt::{self, AttemptProgress, Stage};
use crate::locking::kept_open::KeptOpen;
use crate::locking::table::{RequestGuard, RequestId, Table};

/// Makes the attempts of one client, on threads that may block.
#[derive(Debug)]
pub(crate) struct Attempts {
    pub(crate) directory: Arc<Directory>,
    pub(crate) table: Arc<Table>,
    pub(crate) env: Env,
}

/// The end of one attempt.
#[derive(Debug)]
pub(crate) enum Attempted {
    /// The lock is held, and is in the table.
    Granted(Fence, Option<Watch>),
    /// A waiter may keep the file open.
    Busy(Busy, KeptOpen),
}

/// What one piece of blocking work led to.
enum Step {
    Ended(Attempted),
    Later(Stage, RequestGuard),
}

impl Attempts {
    /// Tries to take the lock for `request`. `watch` is as in [`attempt::go_on`].
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. A release of the request waits until a lock that is granted later is in the table.
    pub(crate) async fn attempt(
        &self,
        request: &Arc<LockRequest>,
        begin: Stage,
        watch: impl Fn(&Path) -> Option<Watch> + Clone + Send + 'static,
    ) -> Result<Attempted, Error> {
        let clock = &self.env.clock;
        let id = RequestId::of(request);
        let mut guard = self.table.serialize(&id).await;
        let give_up = clock.now() + PATIENCE_WITH_OTHERS;
        let mut stage = begin;
        loop {
            let (directory, table) = (Arc::clone(&self.directory), Arc::clone(&self.table));
            let (id, wanted, watch) = (id.clone(), Arc::clone(request), watch.clone());
            let now = clock.now();
            // The caller may never take the result, so only work that has to go on returns the guard.
            let work = move || match attempt::go_on(&directory, &wanted, stage, now, watch)? {
                AttemptProgress::Busy(busy, open) => Ok(Step::Ended(Attempted::Busy(busy, open))),
                AttemptProgress::Granted(lock, watch) => {
                    let fence = lock.fence;
                    table.keep(id, lock);
                    drop(guard);
                    Ok(Step::Ended(Attempted::Granted(fence, watch)))
                }
                AttemptProgress::Later(next) => Ok(Step::Later(next, guard)),
            };
            match blocking(work).await?? {
                Step::Ended(attempted) => return Ok(attempted),
                Step::Later(next, back) if clock.now() < give_up => (stage, guard) = (next, back),
                Step::Later(..) => {
                    let path = self.directory.lock_file(&request.key);
                    return Err(others_are_stuck(&path));
                }
            }
            let [least, most] = PAUSE_FOR_OTHERS;
            let soon = clock.now() + self.env.random_span(least, most);
            clock.sleep_until(soon).await;
        }
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
