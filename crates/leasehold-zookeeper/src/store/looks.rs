//! Looks at queues. The waiters of one client share them: if each asked for itself, a crowd of n would read n times the
//! names of n nodes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use leasehold::store::locked;
use leasehold::{Error, ErrorKind, Fence};

use super::node_data::counter;
use super::questions::read_queue;
use super::refusal::refused;
use crate::client::{Answered, Batch, Code, Connection, Pending, Stat};
use crate::queue::{Paths, Queue};

/// What a look shows.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) queue: Queue,
    /// `None` before the first draw.
    pub(super) counter: Option<Counter>,
}

/// A counter of fences as it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    pub(super) last: Option<Fence>,
    pub(super) version: i32,
    /// The number of the transaction that drew last.
    pub(super) drawn_by: i64,
}

/// A look that was sent. The server reads the names before the counter, so the counter shows all draws of nodes that are gone.
pub(super) struct Look {
    names: Pending<Vec<String>>,
    counter: Pending<(Vec<u8>, Stat)>,
}

impl Look {
    /// Adds the questions to a batch, perhaps with a watch on the queue.
    pub(super) fn ask(batch: &mut Batch<'_>, paths: &Paths, watch: bool) -> Self {
        Self {
            names: batch.children(&paths.lock, watch),
            counter: batch.data(&paths.fence, false),
        }
    }

    pub(super) async fn read(self, paths: &Paths) -> Result<Arc<Seen>, Error> {
        let queue = read_queue(&paths.lock, self.names.answer().await?)?;
        let counter = read_counter(paths, self.counter.answer().await?)?;
        Ok(Arc::new(Seen { queue, counter }))
    }
}

fn read_counter(
    paths: &Paths,
    answer: Answered<(Vec<u8>, Stat)>,
) -> Result<Option<Counter>, Error> {
    match answer {
        Ok(answer) => {
            let (data, stat) = answer.value;
            Ok(Some(Counter {
                last: Fence::new(counter(&paths.fence, &data)?),
                version: stat.version,
                drawn_by: stat.written_by,
            }))
        }
        Err(Code::NO_NODE) => Ok(None),
        Err(code) => Err(refused(&paths.fence, code)),
    }
}

/// The queues that callers look at now, by the path of the folder.
#[derive(Debug, Default)]
pub(super) struct Looks(Mutex<HashMap<String, Arc<Folder>>>);

impl Looks {
    /// Joins the callers that look at a queue.
    pub(super) fn join<'a>(&'a self, connection: &Arc<Connection>, paths: &'a Paths) -> Viewer<'a> {
        let mut folders = locked(&self.0);
        let folder = folders.get(&paths.lock);
        let folder = folder.filter(|folder| Arc::ptr_eq(&folder.connection, connection));
        let (looks, is_alone) = (self, folder.is_none());
        let folder = folder.cloned().unwrap_or_else(|| {
            let folder = Arc::new(Folder {
                connection: Arc::clone(connection),
                paths: paths.clone(),
                looks: Mutex::default(),
            });
            folders.insert(paths.lock.clone(), Arc::clone(&folder));
            folder
        });
        Viewer {
            looks,
            folder,
            is_alone,
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        locked(&self.0).len()
    }
}

/// The looks at one queue on one connection.
#[derive(Debug)]
struct Folder {
    connection: Arc<Connection>,
    paths: Paths,
    looks: Mutex<SharedLooks>,
}

/// Any caller drives a shared look, so a caller that stops polling holds up no other.
type SharedLook = Shared<BoxFuture<'static, Result<Arc<Seen>, Error>>>;

#[derive(Debug, Default)]
struct SharedLooks {
    /// The last one that was sent.
    sent: Option<SharedLook>,
    /// The one that is sent when that one is answered. Until then, callers join it.
    next: Option<SharedLook>,
}

/// A caller that looks at a queue. The last one that leaves removes the entry.
pub(super) struct Viewer<'a> {
    looks: &'a Looks,
    folder: Arc<Folder>,
    /// Whether no other caller looked at the queue when this one came.
    is_alone: bool,
}

/// A look that shows what was sent before it.
pub(super) enum Begun {
    Own(Look),
    Shared(SharedLook),
}

impl Viewer<'_> {
    /// Sends `batch`, with a look if no other caller looks at the queue.
    pub(super) fn begin(&self, mut batch: Batch<'_>) -> Begun {
        if self.is_alone {
            let look = Look::ask(&mut batch, &self.folder.paths, false);
            batch.send();
            return Begun::Own(look);
        }
        batch.send();
        Begun::Shared(self.next())
    }

    /// Returns the look that is sent next.
    fn next(&self) -> SharedLook {
        let mut looks = locked(&self.folder.looks);
        if let Some(next) = &looks.next {
            return next.clone();
        }
        let (folder, sent) = (Arc::downgrade(&self.folder), looks.sent.take());
        let next = async move {
            if let Some(sent) = sent {
                // Its callers have its error.
                let _ = sent.await;
            }
            let gone = || Error::new(ErrorKind::Closed, "no caller looks at the queue");
            let folder = folder.upgrade().ok_or_else(gone)?;
            {
                // Callers that come from now on need a later look.
                let mut looks = locked(&folder.looks);
                looks.sent = looks.next.take();
            }
            let mut batch = folder.connection.batch();
            let look = Look::ask(&mut batch, &folder.paths, false);
            batch.send();
            look.read(&folder.paths).await
        };
        let next = next.boxed().shared();
        looks.next = Some(next.clone());
        next
    }

    pub(super) async fn finish(&self, begun: Begun) -> Result<Arc<Seen>, Error> {
        match begun {
            Begun::Own(look) => look.read(&self.folder.paths).await,
            Begun::Shared(look) => look.await,
        }
    }
}

impl Drop for Viewer<'_> {
    fn drop(&mut self) {
        let mut folders = locked(&self.looks.0);
        let path = &self.folder.paths.lock;
        let current = folders.get(path);
        let is_current = current.is_some_and(|folder| Arc::ptr_eq(folder, &self.folder));
        // The map has one, and this caller the other.
        if is_current && Arc::strong_count(&self.folder) == 2 {
            folders.remove(path);
        }
    }
}
