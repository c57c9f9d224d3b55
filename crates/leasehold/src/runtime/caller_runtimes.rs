//! Which runtimes of callers run what they get.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::runtime::{Handle, Id, RuntimeFlavor};

use super::background::{callers_runtime, spawn_on};
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
#[derive(Debug)]
struct Evidence {
    /// It has yet to begin what it got.
    is_waiting: AtomicBool,
    has_io: AtomicBool,
}

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
    pub fn start<W: Future<Output = ()> + Send + 'static>(&self, work: impl FnOnce() -> W) -> bool {
        let Some((runtime, evidence)) = self.here() else {
            return false;
        };
        if evidence.is_waiting.swap(true, Ordering::AcqRel) {
            return false;
        }
        let (waiting, work) = (Waiting(evidence), work());
        spawn_on(&runtime, async move {
            drop(waiting);
            work.await;
        });
        true
    }

    /// Returns the runtime that polls the caller, if it has shown that it runs and has I/O.
    pub fn runs(&self) -> Option<Handle> {
        self.here().map(|(runtime, _)| runtime)
    }

    fn here(&self) -> Option<(Handle, Arc<Evidence>)> {
        let runtime = callers_runtime()?;
        let own = self.own.get()?;
        let id = runtime.id();
        if id == own.id() {
            return None;
        }
        let mut known = locked(&self.known);
        if let Some((_, evidence)) = known.iter().find(|(of, _)| *of == id) {
            let runs = evidence.has_io.load(Ordering::Acquire)
                && !evidence.is_waiting.load(Ordering::Acquire);
            return runs.then(|| (runtime, Arc::clone(evidence)));
        }
        if known.len() >= RUNTIMES_MAX {
            known.retain(|(_, evidence)| evidence.is_waiting.load(Ordering::Acquire));
        }
        if known.len() < RUNTIMES_MAX {
            let evidence = Evidence {
                is_waiting: AtomicBool::new(true),
                has_io: AtomicBool::new(false),
            };
            let evidence = Arc::new(evidence);
            known.push((id, Arc::clone(&evidence)));
            spawn_on(own, async move { examine(&runtime, evidence) });
        }
        None
    }
}

/// Notes that a task began, or was dropped with its runtime.
struct Waiting(Arc<Evidence>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.is_waiting.store(false, Ordering::Release);
    }
}

/// Gives an empty task to the runtime, from another thread. That writes to a descriptor, if the runtime waits for I/O.
fn examine(runtime: &Handle, evidence: Arc<Evidence>) {
    let is_multi_thread = runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
    let before = platform::writes_of_thread();
    let waiting = Waiting(Arc::clone(&evidence));
    spawn_on(runtime, async move { drop(waiting) });
    let has_written = before.is_some() && before < platform::writes_of_thread();
    let has_io = is_multi_thread || has_written;
    evidence.has_io.store(has_io, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};
    use tokio::task::yield_now;

    use super::super::background::Background;
    use super::*;

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
        assert!(runtimes.runs().is_none());
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
                while runtimes.runs().is_none() {
                    yield_now().await;
                }
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
