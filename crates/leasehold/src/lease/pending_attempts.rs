use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use slab::Slab;

use crate::env::clock::{BootInstant, Clock};
use crate::env::locked;
use crate::runtime::background::Process;
use crate::store::LockRequest;

/// The attempts of a client that its store may grant although their callers no longer poll them.
///
/// A caller may stop to poll an attempt and keep it: its runtime is blocked, or the branch of a `select!` takes long. The
/// store cannot know, and grants the lock to it. So the renewer releases each attempt whose caller was woken, and did not
/// poll it for a third of the TTL.
#[derive(Debug, Default)]
pub(crate) struct PendingAttempts(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    attempts: Slab<Arc<PendingAttempt>>,
    /// No attempt is overdue before this.
    due: Option<BootInstant>,
    is_closed: bool,
}

/// An attempt, and the waker that its store gets.
#[derive(Debug)]
pub(crate) struct PendingAttempt {
    request: Arc<LockRequest>,
    clock: Arc<dyn Clock>,
    polling: Mutex<Polling>,
}

#[derive(Debug, Default)]
struct Polling {
    caller: Option<Waker>,
    /// When the caller was woken, or when the attempt was released. `None` if the caller has polled since.
    woken_at: Option<BootInstant>,
    end: Option<End>,
}

/// Either the renewer releases an attempt, or the caller takes its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Released,
    Taken,
}

/// An attempt that is in the list until this is dropped.
pub(crate) struct WatchedAttempt {
    list: Arc<PendingAttempts>,
    attempt: Arc<PendingAttempt>,
    number: usize,
    process: Process,
}

impl PendingAttempts {
    /// Adds an attempt of this process. Also returns whether the renewer must be notified, because something is due
    /// earlier than it knows.
    pub(super) fn watch(
        self: &Arc<Self>,
        attempt: Arc<PendingAttempt>,
        process: Process,
    ) -> (WatchedAttempt, bool) {
        let due = attempt.clock.now() + attempt.limit();
        let mut entries = locked(&self.0);
        if entries.is_closed {
            locked(&attempt.polling).end = Some(End::Released);
        }
        let number = entries.attempts.insert(Arc::clone(&attempt));
        let is_sooner = entries.due.is_none_or(|first| due < first);
        if is_sooner {
            entries.due = Some(due);
        }
        let watched = WatchedAttempt {
            list: Arc::clone(self),
            attempt,
            number,
            process,
        };
        (watched, is_sooner)
    }

    /// Returns when the renewer must look for [overdue](Self::overdue) attempts.
    pub(super) fn due(&self) -> Option<BootInstant> {
        locked(&self.0).due
    }

    /// Returns the attempts to release. One that is not polled afterwards is returned again, because its store may not
    /// have known that it was released.
    pub(super) fn overdue(&self, now: BootInstant) -> Vec<Arc<LockRequest>> {
        let mut entries = locked(&self.0);
        let (mut overdue, mut due) = (Vec::new(), None);
        for (_, attempt) in &entries.attempts {
            let (mut polling, limit) = (locked(&attempt.polling), attempt.limit());
            if polling.end == Some(End::Taken) {
                continue;
            }
            if polling.woken_at.is_some_and(|at| at + limit <= now) {
                polling.woken_at = Some(now);
                polling.end = Some(End::Released);
                overdue.push(Arc::clone(&attempt.request));
            }
            let next = polling.woken_at.unwrap_or(now) + limit;
            due = Some(due.map_or(next, |first: BootInstant| first.min(next)));
        }
        entries.due = due;
        overdue
    }

    /// Ends all attempts, also later ones, and wakes their callers. Returns the attempts to release.
    pub(super) fn close(&self) -> Vec<Arc<LockRequest>> {
        let (mut ended, mut callers) = (Vec::new(), Vec::new());
        let mut entries = locked(&self.0);
        entries.is_closed = true;
        for (_, attempt) in &entries.attempts {
            let mut polling = locked(&attempt.polling);
            if polling.end != Some(End::Taken) {
                polling.end = Some(End::Released);
                callers.extend(polling.caller.take());
                ended.push(Arc::clone(&attempt.request));
            }
        }
        drop(entries);
        callers.into_iter().for_each(Waker::wake);
        ended
    }
}

impl PendingAttempt {
    pub(super) fn new(request: Arc<LockRequest>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            request,
            clock,
            polling: Mutex::default(),
        })
    }

    /// Returns how long the caller may take to poll after it was woken. It could not use a later grant.
    fn limit(&self) -> Duration {
        self.request.usable_ttl() / 3
    }
}

impl WatchedAttempt {
    /// Polls with `poll`. Returns `None` if the attempt was released, also if that happened meanwhile.
    pub(crate) fn poll<T>(
        &self,
        context: &Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Option<T>> {
        let mut polling = locked(&self.attempt.polling);
        if polling.end == Some(End::Released) {
            return Poll::Ready(None);
        }
        polling.woken_at = None;
        polling.caller = Some(context.waker().clone());
        drop(polling);
        let waker = Waker::from(Arc::clone(&self.attempt));
        let answer = std::task::ready!(poll(&mut Context::from_waker(&waker)));
        let end = *locked(&self.attempt.polling).end.get_or_insert(End::Taken);
        Poll::Ready((end == End::Taken).then_some(answer))
    }
}

impl Drop for WatchedAttempt {
    fn drop(&mut self) {
        // A forked child may never get a mutex of its copy.
        if self.process.is_current() {
            locked(&self.list.0).attempts.remove(self.number);
        }
    }
}

impl Wake for PendingAttempt {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut polling = locked(&self.polling);
        if polling.woken_at.is_none() {
            polling.woken_at = Some(self.clock.now());
        }
        let caller = polling.caller.take();
        drop(polling);
        if let Some(caller) = caller {
            caller.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::clock::{SystemClock, WallTime};
    use crate::env::{Env, SystemEntropy};
    use crate::types::{ClientId, Key, Owner};

    const TTL: Duration = Duration::from_secs(30);

    fn attempt() -> Arc<PendingAttempt> {
        let owner = Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy);
        let (key, now) = (Key::new("deploy").unwrap(), WallTime::from_micros(1));
        let info = Arc::new(Env::default().this_process(None));
        let request = LockRequest::new(key, owner, TTL, now, info);
        PendingAttempt::new(Arc::new(request), Arc::new(SystemClock))
    }

    fn list() -> Arc<PendingAttempts> {
        Arc::default()
    }

    fn watch(list: &Arc<PendingAttempts>) -> (WatchedAttempt, bool) {
        list.watch(attempt(), Process::current())
    }

    fn answered(watched: &WatchedAttempt, meanwhile: impl FnOnce(&Waker)) -> Poll<Option<()>> {
        watched.poll(&Context::from_waker(Waker::noop()), |context| {
            meanwhile(context.waker());
            Poll::Ready(())
        })
    }

    /// Polls it once, and returns the waker that the store has.
    fn poll(watched: &WatchedAttempt) -> Option<Waker> {
        let mut waker = None;
        let polled = watched.poll(&Context::from_waker(Waker::noop()), |context| {
            waker = Some(context.waker().clone());
            Poll::<()>::Pending
        });
        assert_eq!(polled.is_pending(), waker.is_some());
        waker
    }

    #[test]
    fn unpolled_attempt_is_released_again_and_again() {
        let (list, now) = (list(), SystemClock.now());
        let (watched, is_sooner) = watch(&list);
        assert!(is_sooner);
        poll(&watched).unwrap().wake();
        assert!(list.overdue(now).is_empty());
        let woken_at = list.due().unwrap() - TTL / 3;
        assert!(now <= woken_at && woken_at <= SystemClock.now());
        let overdue = woken_at + TTL / 3;
        for round in 0..3 {
            assert_eq!(list.overdue(overdue + TTL * round).len(), 1, "{round}");
        }
        assert!(poll(&watched).is_none());
        drop(watched);
        assert!(list.overdue(overdue + TTL * 3).is_empty());
        assert_eq!(list.due(), None);
    }

    #[test]
    fn close_ends_attempts_from_before_and_after() {
        let list = list();
        let (before, _) = watch(&list);
        let (taken, _) = watch(&list);
        assert_eq!(answered(&taken, |_| {}), Poll::Ready(Some(())));
        assert_eq!(list.close().len(), 1, "the other one has its answer");
        let (after, _) = watch(&list);
        assert!(poll(&before).is_none() && poll(&after).is_none());
    }

    /// Its thread may be suspended while it polls.
    #[test]
    fn answer_after_the_release_is_not_taken() {
        let list = list();
        let (watched, _) = watch(&list);
        let polled = answered(&watched, |waker| {
            waker.wake_by_ref();
            assert_eq!(list.overdue(SystemClock.now() + TTL).len(), 1);
        });
        assert_eq!(polled, Poll::Ready(None));
    }

    #[test]
    fn attempt_whose_answer_was_taken_stays() {
        let list = list();
        let (watched, _) = watch(&list);
        let waker = poll(&watched).unwrap();
        assert_eq!(answered(&watched, |_| {}), Poll::Ready(Some(())));
        waker.wake();
        assert!(list.overdue(SystemClock.now() + TTL).is_empty());
        assert_eq!(list.due(), None);
    }

    #[test]
    fn attempt_that_is_polled_or_not_woken_stays() {
        let (list, now) = (list(), SystemClock.now());
        let (woken, _) = watch(&list);
        let (waits, is_sooner) = watch(&list);
        assert!(!is_sooner, "the renewer knows of the first one");
        poll(&woken).unwrap().wake();
        poll(&woken).unwrap();
        poll(&waits).unwrap();
        for round in 1..5 {
            assert!(list.overdue(now + TTL * round).is_empty(), "{round}");
            assert_eq!(list.due(), Some(now + TTL * round + TTL / 3));
        }
    }
}
