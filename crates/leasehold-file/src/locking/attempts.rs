use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leasehold::env::Env;
use leasehold::store::background::blocking;
use leasehold::store::{Busy, LockRequest};
use leasehold::{Error, ErrorKind};

use crate::directory::Directory;
use crate::kernel::listener::Watch;
use crate::locking::attempt::{self, AttemptProgress, Stage};
use crate::locking::held_lock::HeldLock;
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
    /// The lock is held. A release of the request waits for the guard.
    Granted(HeldLock, RequestGuard, Option<Watch>),
    /// A waiter may keep the file open.
    Busy(Busy, KeptOpen),
}

impl Attempts {
    /// Tries to take the lock for `request`. `watch` is as in [`attempt::go_on`].
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. A lock that is granted later is freed before a release of the request
    /// gets its turn.
    pub(crate) async fn attempt(
        &self,
        request: &Arc<LockRequest>,
        begin: Stage,
        watch: impl Fn(&Path) -> Option<Watch> + Clone + Send + 'static,
    ) -> Result<Attempted, Error> {
        let clock = &self.env.clock;
        let mut guard = self.table.serialize(&RequestId::of(request)).await;
        let give_up = clock.now() + PATIENCE_WITH_OTHERS;
        let mut stage = begin;
        loop {
            let (directory, wanted, watch) =
                (self.directory.clone(), Arc::clone(request), watch.clone());
            let now = clock.now();
            let work = move || attempt::go_on(&directory, &wanted, stage, now, watch);
            // If this future is dropped, the work goes on, and its result is dropped, which frees
            // the lock; only then, by the order within the pair, does a release get its turn.
            let (step, back) = blocking(move || (work(), guard)).await?;
            guard = back;
            match step? {
                AttemptProgress::Busy(busy, open) => return Ok(Attempted::Busy(busy, open)),
                AttemptProgress::Granted(lock, watch) => {
                    return Ok(Attempted::Granted(lock, guard, watch));
                }
                AttemptProgress::Later(next) if clock.now() < give_up => stage = next,
                AttemptProgress::Later(_) => {
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
