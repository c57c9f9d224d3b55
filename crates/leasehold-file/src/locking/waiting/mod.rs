//! The waiters of one client: a queue for each lock and kind of request.

mod queue;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use leasehold::store::{Busy, LockRequest, Progress, SessionContext, locked};
use leasehold::{Error, ErrorKind, Fence, Key, Mode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use crate::kernel::listener::Watch;
use crate::locking::attempts::Attempts;
use crate::locking::kept_open::KeptOpen;
use crate::locking::notifications::Notifications;
use crate::locking::table::RequestId;
use crate::locking::waiting::queue::{QueueChange, WaitQueue, Waiter};

/// Waiters that want the same: one of them tries for all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct QueueId {
    key: Key,
    mode: Mode,
    barges: bool,
}

/// The queues of one client.
#[derive(Debug)]
pub(crate) struct WaitQueues {
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) notifications: Arc<Notifications>,
    context: SessionContext,
    entries: Mutex<HashMap<QueueId, WaitEntry>>,
    room: Arc<Semaphore>,
    /// Only for writers, which need their file to announce that they wait.
    room_of_writers: Arc<Semaphore>,
    /// The queues without room that may try soon. The others wait, first come, first served.
    polling: Semaphore,
}

#[derive(Debug)]
enum WaitEntry {
    /// The first request tries, and the queue is empty.
    FirstTry,
    Queue {
        changes: mpsc::UnboundedSender<QueueChange>,
        /// What the waiters know about the holder.
        busy: watch::Receiver<Option<Busy>>,
    },
}

/// The right of the first request to try at once. Meanwhile, others join the queue.
#[derive(Debug)]
pub(crate) struct FirstTry<'a> {
    queues: &'a WaitQueues,
    id: QueueId,
}

impl QueueId {
    fn of(request: &LockRequest) -> Self {
        Self {
            key: request.key.clone(),
            mode: request.mode,
            barges: request.barges,
        }
    }
}

impl WaitQueues {
    pub(crate) fn new(
        attempts: Arc<Attempts>,
        notifications: Arc<Notifications>,
        context: SessionContext,
    ) -> Arc<Self> {
        Arc::new(Self {
            attempts,
            notifications,
            context,
            entries: Mutex::default(),
            room: Arc::new(Semaphore::new(ROOM)),
            room_of_writers: Arc::new(Semaphore::new(ROOM_OF_WRITERS)),
            polling: Semaphore::new(POLLING_MAX),
        })
    }

    /// Lets `request` try at once, unless others wait for the same or try already.
    pub(crate) fn first_try(&self, request: &LockRequest) -> Option<FirstTry<'_>> {
        let id = QueueId::of(request);
        let mut entries = locked(&self.entries);
        if entries.contains_key(&id) {
            return None;
        }
        entries.insert(id.clone(), WaitEntry::FirstTry);
        Some(FirstTry { queues: self, id })
    }

    /// Waits in the queue until the lock is held.
    ///
    /// `open` is the file of the first try, which has failed.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        request: &Arc<LockRequest>,
        open: Option<KeptOpen>,
        first_try: Option<FirstTry<'_>>,
        progress: &Progress<'_>,
    ) -> Result<Fence, Error> {
        let (answer, mut answered) = oneshot::channel();
        let mut busy = self.join(Waiter {
            request: Arc::clone(request),
            open,
            answer,
        });
        drop(first_try);
        loop {
            if let Some(busy) = busy.borrow_and_update().clone() {
                progress.busy(busy);
            }
            let changed = tokio::select! {
                biased;
                answer = &mut answered => return answer.map_err(|_| ended())?,
                changed = busy.changed() => changed,
            };
            if changed.is_err() {
                return answered.await.map_err(|_| ended())?;
            }
        }
    }

    fn join(self: &Arc<Self>, waiter: Waiter) -> watch::Receiver<Option<Busy>> {
        let id = QueueId::of(&waiter.request);
        let mut entries = locked(&self.entries);
        if let Some(WaitEntry::Queue { changes, busy }) = entries.get(&id) {
            // It fails once the thread of the client has ended, and the waiter hears of that.
            let _ = changes.send(QueueChange::Joined(waiter));
            return busy.clone();
        }
        let (changes, changed) = mpsc::unbounded_channel();
        let (tell, busy) = watch::channel(None);
        let _ = changes.send(QueueChange::Joined(waiter));
        let of_waiters = busy.clone();
        entries.insert(id.clone(), WaitEntry::Queue { changes, busy });
        let queue = WaitQueue::new(Arc::clone(self), id, changed, tell);
        self.context.spawn(queue.run());
        of_waiters
    }

    /// Ends the wait of a request that was released, also if its caller keeps the future and does not poll it.
    pub(crate) fn leave(&self, request: &LockRequest) {
        if let Some(WaitEntry::Queue { changes, .. }) =
            locked(&self.entries).get(&QueueId::of(request))
        {
            let _ = changes.send(QueueChange::Left(RequestId::of(request)));
        }
    }

    /// Removes the queue, unless waiters have joined meanwhile. They are left in `changed`.
    fn close(&self, id: &QueueId, changed: &mpsc::UnboundedReceiver<QueueChange>) -> bool {
        // Waiters join under the same lock.
        let mut entries = locked(&self.entries);
        let is_over = changed.is_empty();
        if is_over {
            entries.remove(id);
        }
        is_over
    }

    /// Returns the right of a queue to keep a file open until it drops the right. `None` if there are too
    /// many: a process may only have a limited number of files open.
    fn room(&self, mode: Mode) -> Option<OwnedSemaphorePermit> {
        let of = |room: &Arc<Semaphore>| Arc::clone(room).try_acquire_owned().ok();
        let is_writer = mode == Mode::Exclusive;
        of(&self.room).or_else(|| of(&self.room_of_writers).filter(|_| is_writer))
    }

    /// Returns how the tries of a queue start to watch the file of a busy lock.
    fn watcher(
        self: &Arc<Self>,
        has_room: bool,
    ) -> impl Fn(&Path) -> Option<Watch> + Clone + Send + use<> {
        // The queue may end first, with the client.
        let queues = has_room.then(|| Arc::downgrade(self));
        move |path| {
            let queues = queues.as_ref().and_then(Weak::upgrade)?;
            queues.notifications.watch(path)
        }
    }
}

impl Drop for FirstTry<'_> {
    fn drop(&mut self) {
        let mut entries = locked(&self.queues.entries);
        if let Some(WaitEntry::FirstTry) = entries.get(&self.id) {
            entries.remove(&self.id);
        }
    }
}

fn ended() -> Error {
    let text = "the client ended before the lock was free";
    Error::new(ErrorKind::Closed, text).with_unknown_effect()
}

/// How many files the queues of a client keep open. With those of [`ROOM_OF_WRITERS`], this is a quarter of the files
/// that a process may usually have open.
const ROOM: usize = 192;

const ROOM_OF_WRITERS: usize = 64;

/// How many queues without room are about to try. Each of them pauses before it does, so this bounds the tries in a
/// second.
const POLLING_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::pin::pin;
    use std::task::Poll;
    use std::time::Duration;

    use leasehold::clock::WallTime;
    use leasehold::env::{Env, SystemEntropy};
    use leasehold::look::{ClientId, Owner};
    use leasehold_testkit::servers::until;

    use super::*;
    use crate::directory::{Directory, Rules};
    use crate::kernel::listener::Listener;
    use crate::locking::attempt::Stage;
    use crate::locking::attempts::Attempted;
    use crate::locking::notifications::NotificationSource;
    use crate::locking::writer_yield::WriterYield;

    fn waiter() -> Arc<LockRequest> {
        let id = ClientId::random(&SystemEntropy);
        let client = Env::default().this_process(None);
        let owner = Owner::random(id, &SystemEntropy);
        let key = Key::new("deploy").unwrap();
        let (ttl, proposal) = (Duration::from_secs(1), WallTime::from_micros(1));
        let request = LockRequest::new(key, owner, ttl, proposal, Arc::new(client));
        Arc::new(request.waiting(true))
    }

    fn queues(dir: &Path, source: NotificationSource) -> Arc<WaitQueues> {
        let env = Env::default();
        let client = Arc::new(env.this_process(None));
        let context = SessionContext::new(env.clone(), client, tokio::runtime::Handle::current());
        let attempts = Attempts {
            directory: Arc::new(Directory::prepare(dir, Rules::default()).unwrap()),
            table: Arc::default(),
            env,
        };
        let notifications =
            Notifications::new(source, context.clone(), Arc::clone(&attempts.table));
        WaitQueues::new(Arc::new(attempts), Arc::new(notifications), context)
    }

    /// Waits while another request has the lock. `seen` sees the wait after it was refused.
    async fn waits(queues: &Arc<WaitQueues>, seen: impl FnOnce()) {
        let begin = Stage::Try(None, WriterYield::default());
        let (table, holder) = (&queues.attempts.table, waiter());
        let held = queues.attempts.attempt(&holder, begin, |_| None).await;
        assert!(matches!(held, Ok(Attempted::Granted(..))), "{held:?}");
        let (waiter, progress) = (waiter(), Progress::new());
        let mut waiting = pin!(queues.wait(&waiter, None, None, &progress));
        std::future::poll_fn(|context| match waiting.as_mut().poll(context) {
            Poll::Ready(answer) => panic!("beside its holder: {answer:?}"),
            Poll::Pending if progress.last().is_some() => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        })
        .await;
        seen();
        drop(table.remove(&RequestId::of(&holder)));
        waiting.await.unwrap();
        drop(table.remove(&RequestId::of(&waiter)));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn waiters_poll_when_inotify_is_exhausted() {
        let none_left = || Err(nix::errno::Errno::EMFILE.into());
        let exhausted = NotificationSource::Kernel(none_left);
        for source in [exhausted, NotificationSource::SharedFileSystem] {
            let dir = tempfile::tempdir().unwrap();
            let queues = queues(dir.path(), source);
            for _ in 0..2 {
                waits(&queues, || {
                    assert!(queues.notifications.warned.is_completed());
                    // Its file stays open all the same: a close could notify others.
                    assert_eq!(queues.room.available_permits(), ROOM - 1);
                })
                .await;
                until("room", || queues.room.available_permits() == ROOM);
            }
        }
    }

    #[tokio::test]
    async fn writers_have_room_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let queues = queues(dir.path(), NotificationSource::Kernel(Listener::start));
        let rooms =
            |mode, count| -> Vec<_> { (0..count).map_while(|_| queues.room(mode)).collect() };
        let readers = rooms(Mode::Shared, ROOM);
        assert_eq!(readers.len(), ROOM);
        assert!(queues.room(Mode::Shared).is_none());
        let writers = rooms(Mode::Exclusive, ROOM);
        assert_eq!(writers.len(), ROOM_OF_WRITERS);
        drop(readers);
        assert!(queues.room(Mode::Shared).is_some());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn waiter_without_room_gets_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let queues = queues(dir.path(), NotificationSource::Kernel(Listener::start));
        let taken = || queues.room(Mode::Exclusive);
        let _taken: Vec<_> = std::iter::from_fn(taken).collect();
        waits(&queues, || {}).await;
    }
}
