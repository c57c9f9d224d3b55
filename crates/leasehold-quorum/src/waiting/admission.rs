use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use foldhash::HashMap;
use leasehold_types::{BootInstant, LockRequest};

use crate::operation::{OperationId, ReleaseMode};

/// The acquisitions and releases whose turn to ask has not come, so that a burst neither floods the members nor keeps the
/// client from renewing leases.
#[derive(Debug)]
pub(crate) struct Admission {
    /// How many requests may be in flight at a member before further operations wait for replies. Members answer in order,
    /// so behind too many of them even a healthy member would exceed the limit of a request. As in TCP's slow start, the
    /// window grows by one with each reply, and starts again once a member exceeded a limit.
    window: usize,
    turns: VecDeque<Turn>,
    /// The requests of those that have not begun. A cancelled one keeps its turn and has no request.
    requests: HashMap<OperationId, Arc<LockRequest>>,
    /// How many turns resume an acquisition.
    resuming: usize,
    /// Something changed while they continued, so all of them continue once more.
    changed_since: bool,
    /// After a portion, the next one has to wait until then.
    paused_until: Option<BootInstant>,
    /// When to look for room again, if no reply comes before.
    look_at: Option<BootInstant>,
}

/// What happens when a turn comes.
#[derive(Debug)]
enum Turn {
    Begin(OperationId),
    Resume(OperationId),
    Release(OperationId, Arc<LockRequest>, ReleaseMode),
}

/// What follows when a turn has come.
#[derive(Debug)]
pub(crate) enum Admitted {
    Begin(OperationId, Arc<LockRequest>),
    /// Something changed at a member, or time passed.
    Resume(OperationId),
    Release(OperationId, Arc<LockRequest>, ReleaseMode),
    /// The same for all acquisitions without a majority.
    ResumeAll,
}

/// The smallest and the largest window.
pub(crate) const WINDOW_MIN: usize = 64;
pub(crate) const WINDOW_MAX: usize = 1_024;

/// How many operations continue at once. Between portions, the client renews its leases.
pub(crate) const PORTION: usize = 1_000;

const PORTION_PAUSE: Duration = Duration::from_millis(5);

impl Default for Admission {
    fn default() -> Self {
        Self {
            window: WINDOW_MIN,
            turns: VecDeque::new(),
            requests: HashMap::default(),
            resuming: 0,
            changed_since: false,
            paused_until: None,
            look_at: None,
        }
    }
}

impl Admission {
    #[inline]
    pub(crate) fn window(&self) -> usize {
        self.window
    }

    /// A member answered this many requests.
    #[inline]
    pub(crate) fn widen(&mut self, answered: usize) {
        self.window = (self.window + answered).min(WINDOW_MAX);
    }

    /// A member exceeded the limit of a request.
    pub(crate) fn narrow(&mut self) {
        self.window = WINDOW_MIN;
    }

    /// Queues an acquisition that has not begun.
    pub(crate) fn begin(&mut self, id: OperationId, lock_request: Arc<LockRequest>) {
        self.turns.push_back(Turn::Begin(id));
        self.requests.insert(id, lock_request);
    }

    /// Queues a release.
    pub(crate) fn release(
        &mut self,
        id: OperationId,
        lock_request: Arc<LockRequest>,
        mode: ReleaseMode,
    ) {
        let turn = Turn::Release(id, lock_request, mode);
        self.turns.push_back(turn);
    }

    /// Returns whether all acquisitions may continue now. If some still have to since the last change, all of them
    /// continue once more afterwards.
    pub(crate) fn may_resume_all(&mut self) -> bool {
        self.changed_since |= self.resuming > 0;
        !self.changed_since
    }

    /// Queues acquisitions to resume.
    pub(crate) fn resume(&mut self, ids: Vec<OperationId>) {
        self.resuming = ids.len();
        self.turns.extend(ids.into_iter().map(Turn::Resume));
    }

    /// The caller no longer wants it. Returns whether it had not begun.
    pub(crate) fn cancel(&mut self, id: OperationId) -> bool {
        self.requests.remove(&id).is_some()
    }

    /// Returns the request of an acquisition that has not begun.
    pub(crate) fn request(&self, id: OperationId) -> Option<&Arc<LockRequest>> {
        self.requests.get(&id)
    }

    /// Returns whether nothing waits for its turn.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty() && !self.changed_since
    }

    /// Returns whose turn it is.
    pub(crate) fn next(&mut self) -> Option<Admitted> {
        loop {
            if self.resuming == 0 && std::mem::take(&mut self.changed_since) {
                return Some(Admitted::ResumeAll);
            }
            match self.turns.pop_front()? {
                Turn::Resume(id) => {
                    self.resuming -= 1;
                    return Some(Admitted::Resume(id));
                }
                Turn::Begin(id) => {
                    if let Some(lock_request) = self.requests.remove(&id) {
                        return Some(Admitted::Begin(id, lock_request));
                    }
                }
                Turn::Release(id, lock_request, mode) => {
                    return Some(Admitted::Release(id, lock_request, mode));
                }
            }
        }
    }

    /// A portion continued.
    pub(crate) fn pause(&mut self, now: BootInstant) {
        self.paused_until = Some(now + PORTION_PAUSE);
    }

    /// The members have no room. The next reply continues it, or the time if a member falls silent.
    pub(crate) fn wait_for_room(&mut self, now: BootInstant) {
        self.look_at = Some(now + PORTION_PAUSE);
    }

    /// Returns whether the pause after the last portion lasts.
    pub(crate) fn is_paused(&mut self, now: BootInstant) -> bool {
        self.look_at = None;
        self.paused_until.take_if(|until| *until <= now);
        self.paused_until.is_some()
    }

    /// Returns when the next portion may continue.
    pub(crate) fn next_timeout(&self) -> Option<BootInstant> {
        self.paused_until.or(self.look_at)
    }
}
