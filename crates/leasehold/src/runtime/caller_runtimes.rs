//! Which runtimes of callers run what they get.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::runtime::{Handle, Id, RuntimeFlavor};
use tokio::sync::Notify;
use tokio::task::yield_now;

use super::background::{callers_runtime, in_runtime, spawn_on};
use crate::env::clock::{Clock, within};
use crate::env::{locked, platform};

/// The runtimes of the callers of one client, and which of them run.
///
/// A runtime that is there may be entered and never driven, or its thread may block. So a runtime gets work only once it
/// has begun what it got before: at first an empty task. At most one task waits in a runtime that does not run.
///
/// It also needs I/O. Tokio cannot tell, and its sockets panic without, so a current-thread runtime gets work only if
/// the kernel shows that it waits for I/O. Only Linux does. A multi-thread runtime counts as one with I/O.
#[derive(Debug, Default)]
pub struct CallerRuntimes {
    /// The runtime of the client's thread.
    own: OnceLock<Handle>,
    known: Mutex<Vec<(Id, Arc<Evidence>)>>,
}

/// What a runtime has shown.
#[derive(Debug, Default)]
struct Evidence {
    /// It has yet to begin what it got.
    is_waiting: AtomicBool,
    /// It did not begin it within [`BEGIN_MAX`].
    is_late: AtomicBool,
    has_io: AtomicBool,
    /// It has begun what it got.
    begun: Notify,
}

/// How long a runtime that runs may take to begin a task. One that is busy for longer cannot drive a connection either.
const BEGIN_MAX: Duration = Duration::from_millis(100);

/// Of a client with more runtimes, those that ran what they got are forgotten.
const RUNTIMES_MAX: usize = 16;

impl CallerRuntimes {
    /// Names the runtime of the client's thread, which is no caller's. No other runtime gets anything before.
    pub fn serve_from(&self, own: Handle) {
        // A second one would change nothing.
        let _ = self.own.set(own);
    }

    /// Starts `work` on the runtime that polls the caller, if that has shown that it runs and has I/O. Returns whether
    /// it did. The runtime may have stopped since, so `work` takes its place in its first poll.
    pub(crate) fn start<W: Future<Output = ()> + Send + 'static>(
        &self,
        work: impl FnOnce() -> W,
    ) -> bool {
        let Some((runtime, evidence, is_new)) = self.here() else {
            return false;
        };
        if is_new && let Some(own) = self.own.get() {
            examine(own, &runtime, &evidence);
            return false;
        }
        let has_io = evidence.has_io.load(Ordering::Acquire);
        if !has_io || evidence.is_waiting.swap(true, Ordering::AcqRel) {
            return false;
        }
        let (needs, waiting, work) = (NeedsIo(Arc::clone(&evidence)), Waiting(evidence), work());
        spawn_on(&runtime, async move {
            drop(waiting);
            let _needs = needs;
            work.await;
        });
        true
    }

    /// Returns the runtime that polls the caller, once it has run an empty task; `None` if it takes long, or has no I/O.
    /// The threads of a multi-thread runtime always run.
    pub(crate) async fn running(&self, clock: &dyn Clock) -> Option<Handle> {
        let (runtime, own) = (callers_runtime()?, self.own.get()?);
        let is_own = runtime.id() == own.id();
        if !is_own && runtime.runtime_flavor() == RuntimeFlavor::MultiThread {
            return Some(runtime);
        }
        let (runtime, evidence, is_new) = self.here()?;
        if evidence.is_late.load(Ordering::Acquire) {
            return None;
        }
        let begun = evidence.begun.notified();
        if is_new {
            examine(own, &runtime, &evidence);
        } else if !evidence.is_waiting.swap(true, Ordering::AcqRel) {
            let waiting = Waiting(Arc::clone(&evidence));
            spawn_on(&runtime, async move { drop(waiting) });
        }
        // The task is the next one of a runtime that runs. This is faster than a timer.
        yield_now().await;
        if evidence.is_waiting.load(Ordering::Acquire) {
            let beginning = within(clock, clock.now() + BEGIN_MAX, begun);
            if in_runtime(own, beginning).await.is_none() {
                evidence.is_late.store(true, Ordering::Release);
                if !evidence.is_waiting.load(Ordering::Acquire) {
                    // It began a moment ago.
                    evidence.is_late.store(false, Ordering::Release);
                }
                return None;
            }
        }
        evidence.has_io.load(Ordering::Acquire).then_some(runtime)
    }

    /// Returns the runtime that polls the caller, and whether the caller has to [`examine`] it. `None` if it may get nothing.
    fn here(&self) -> Option<(Handle, Arc<Evidence>, bool)> {
        let (runtime, own) = (callers_runtime()?, self.own.get()?);
        let id = runtime.id();
        if id == own.id() {
            return None;
        }
        let mut known = locked(&self.known);
        if let Some((_, evidence)) = known.iter().find(|(of, _)| *of == id) {
            return Some((runtime, Arc::clone(evidence), false));
        }
        if known.len() >= RUNTIMES_MAX {
            known.retain(|(_, evidence)| evidence.is_waiting.load(Ordering::Acquire));
        }
        if known.len() >= RUNTIMES_MAX {
            return None;
        }
        let evidence = Arc::new(Evidence::default());
        evidence.is_waiting.store(true, Ordering::Release);
        known.push((id, Arc::clone(&evidence)));
        Some((runtime, evidence, true))
    }
}

/// Notes that a task began, or was dropped with its runtime.
struct Waiting(Arc<Evidence>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.is_late.store(false, Ordering::Release);
        self.0.is_waiting.store(false, Ordering::Release);
        self.0.begun.notify_waiters();
    }
}

/// Notes that a runtime has no I/O after all, if its first socket panics.
struct NeedsIo(Arc<Evidence>);

impl Drop for NeedsIo {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_io.store(false, Ordering::Release);
        }
    }
}

/// Gives an empty task to the runtime, from the thread of `own`. That writes to a descriptor, if the runtime waits for I/O.
fn examine(own: &Handle, runtime: &Handle, evidence: &Arc<Evidence>) {
    let (runtime, evidence) = (runtime.clone(), Arc::clone(evidence));
    spawn_on(own, async move {
        let is_multi_thread = runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
        let waiting = Arc::new(Waiting(Arc::clone(&evidence)));
        let task = Arc::clone(&waiting);
        let before = platform::writes_of_thread();
        spawn_on(&runtime, async move { drop(task) });
        let has_written = before.is_some() && before < platform::writes_of_thread();
        let has_io = is_multi_thread || has_written;
        evidence.has_io.store(has_io, Ordering::Release);
        drop(waiting);
    });
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};

    use super::super::background::{Background, block_on};
    use super::*;
    use crate::env::clock::SystemClock;

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    fn runtimes(background: &Background) -> CallerRuntimes {
        let runtimes = CallerRuntimes::default();
        runtimes.serve_from(background.handle().clone());
        runtimes
    }

    /// Starts nothing, and waits until the background thread has examined the runtime.
    fn examined(runtimes: &CallerRuntimes, background: &Background) {
        assert!(!runtimes.start(|| async {}));
        let (done, is_done) = std::sync::mpsc::channel();
        // After what the client's runtime got before.
        spawn_on(background.handle(), async move { done.send(()).unwrap() });
        is_done.recv().unwrap();
    }

    #[test]
    fn runtime_that_runs_gets_work() {
        let background = Background::start().unwrap();
        for runtime in [
            runtime(),
            Builder::new_multi_thread().enable_all().build().unwrap(),
        ] {
            let runtimes = runtimes(&background);
            runtime.block_on(async {
                examined(&runtimes, &background);
                while !runtimes.start(|| async {}) {
                    yield_now().await;
                }
                let running = async || runtimes.running(&SystemClock).await.is_some();
                while !running().await {
                    yield_now().await;
                }
                assert!(running().await && running().await);
            });
        }
    }

    #[test]
    fn runtime_without_io_gets_none() {
        let background = Background::start().unwrap();
        let runtimes = runtimes(&background);
        Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(async {
                examined(&runtimes, &background);
                for _ in 0..10 {
                    yield_now().await;
                    assert!(!runtimes.start(|| async {}));
                }
            });
    }

    #[test]
    fn runtime_whose_work_panics_gets_no_more() {
        let background = Background::start().unwrap();
        let runtimes = runtimes(&background);
        let threads = Builder::new_multi_thread().worker_threads(1).build();
        threads.unwrap().block_on(async {
            examined(&runtimes, &background);
            // As the first socket does there.
            while !runtimes.start(|| async { panic!("this runtime has no I/O") }) {
                yield_now().await;
            }
            let (done, is_done) = tokio::sync::oneshot::channel();
            // The only worker runs this after the work.
            spawn_on(&Handle::current(), async move { done.send(()).unwrap() });
            is_done.await.unwrap();
            assert!(!runtimes.start(|| async {}));
        });
    }

    #[test]
    fn at_most_one_task_waits_in_an_idle_runtime() {
        let background = Background::start().unwrap();
        let runtimes = runtimes(&background);
        let idle = runtime();
        let _entered = idle.enter();
        examined(&runtimes, &background);
        for _ in 0..10 {
            assert!(!runtimes.start(|| async {}), "nobody drives it");
        }
        assert_eq!(idle.metrics().num_alive_tasks(), 1);
        idle.block_on(yield_now());
        assert!(runtimes.start(|| async {}), "it ran");
        for _ in 0..10 {
            assert!(!runtimes.start(|| async {}), "it runs no longer");
        }
        assert_eq!(idle.metrics().num_alive_tasks(), 1);
    }

    /// Many callers at once wait for one empty task.
    #[test]
    fn runtime_is_proven_before_each_use() {
        let background = Background::start().unwrap();
        let runtimes = runtimes(&background);
        let driven = runtime();
        let all = driven.block_on(async {
            let asking = (0..8).map(|_| runtimes.running(&SystemClock));
            futures_util::future::join_all(asking).await
        });
        assert!(all.iter().all(Option::is_some), "it runs");
        let _entered = driven.enter();
        let running = || pollster::block_on(runtimes.running(&SystemClock));
        assert!(running().is_none(), "nobody drives it");
        assert!(running().is_none());
        assert_eq!(driven.metrics().num_alive_tasks(), 1);
        driven.block_on(yield_now());
        assert!(driven.block_on(runtimes.running(&SystemClock)).is_some());
        assert!(
            block_on(runtimes.running(&SystemClock)).is_none(),
            "it is blocked"
        );
    }

    #[test]
    fn own_and_forgotten_runtimes_get_none() {
        let background = Background::start().unwrap();
        let runtimes = runtimes(&background);
        let _entered = background.handle().enter();
        assert!(!runtimes.start(|| async {}));
        let many: Vec<_> = (0..2 * RUNTIMES_MAX).map(|_| runtime()).collect();
        for runtime in &many {
            let _entered = runtime.enter();
            examined(&runtimes, &background);
        }
        assert_eq!(locked(&runtimes.known).len(), RUNTIMES_MAX);
        drop(many);
        let another = runtime();
        let _entered = another.enter();
        examined(&runtimes, &background);
        assert_eq!(locked(&runtimes.known).len(), 1, "the others have ended");
    }
}
