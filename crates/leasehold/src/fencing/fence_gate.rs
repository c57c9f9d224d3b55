use std::sync::Mutex;

use super::fenced::Fenced;
use crate::env::{BoxFuture, locked};
use crate::types::{Error, Fence};

/// Checks fences for a resource in this process. It remembers the greatest fence that it has admitted,
/// and refuses every smaller one from then on.
///
/// The first admission of a fence shuts out smaller ones, whether it is for a write, for a read, or only
/// for [`Guard::fence_off`](crate::Guard::fence_off). Equal fences pass, so a holder can write as often as it likes.
///
/// A gate is for one resource and for the fences of one lock; fences of different locks must not be
/// compared. It has no keys: make it a field of the value that it guards, so that both live equally long.
/// It remembers only in memory. A resource that outlives the process stores the fence with its data, and
/// opens its gate with [`starting_at`](Self::starting_at).
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use leasehold::{Client, fencing::FenceGate, memory::MemoryStore};
///
/// let (locks, gate) = (Client::new(MemoryStore::new()), FenceGate::new());
/// let mut document = String::new();
///
/// let paused = locks.lock("document").acquire().await?;
/// let late = paused.fence();
/// paused.release().await?;
/// let next = locks.lock("document").acquire().await?;
///
/// gate.run(next.fence(), || document.push_str("in time"))?;
/// let refused = gate.run(late, || document.push_str(", too late"));
/// assert!(refused.unwrap_err().is_fenced());
/// assert_eq!(document, "in time");
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct FenceGate {
    greatest: Mutex<Option<Fence>>,
}

impl FenceGate {
    /// Returns a gate that admits any fence first.
    pub const fn new() -> Self {
        Self {
            greatest: Mutex::new(None),
        }
    }

    /// Returns a gate that refuses fences smaller than `greatest`, which the resource stored earlier.
    pub const fn starting_at(greatest: Fence) -> Self {
        Self {
            greatest: Mutex::new(Some(greatest)),
        }
    }

    /// Returns the greatest fence so far, for a resource to store with its data.
    pub fn greatest(&self) -> Option<Fence> {
        *locked(&self.greatest)
    }

    /// Admits `fence` unless the gate has admitted a greater one. If an effect of a smaller fence is
    /// running in [`run`](Self::run), this waits for it. Once this returns, no such effect is running,
    /// and none will.
    ///
    /// Another holder may overtake what the caller does *after* this check, so put writes into `run`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`](crate::ErrorKind::Fenced), naming both fences.
    pub fn admit(&self, fence: Fence) -> Result<(), Error> {
        self.run(fence, || ())
    }

    /// Runs `effect` if the gate admits `fence`, in one step: it admits no greater fence meanwhile.
    ///
    /// Effects run one at a time, and the thread blocks until its turn, so keep them short. An effect
    /// that calls its own gate deadlocks. After an effect that panics, the gate still refuses smaller
    /// fences.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`](crate::ErrorKind::Fenced), naming both fences; `effect` was not run.
    pub fn run<T>(&self, fence: Fence, effect: impl FnOnce() -> T) -> Result<T, Error> {
        let mut greatest = locked(&self.greatest);
        match *greatest {
            Some(greatest) if fence < greatest => Err(Error::fenced(fence, greatest)),
            _ => {
                *greatest = Some(fence);
                Ok(effect())
            }
        }
    }
}

impl Fenced for FenceGate {
    fn fence_off(&self, fence: Fence) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.admit(fence) })
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::env::{Entropy as _, SystemEntropy};
    use crate::types::ErrorKind;

    fn fence(number: u64) -> Fence {
        Fence::new(number).unwrap()
    }

    #[test]
    fn only_smaller_fences_are_rejected() {
        let gate = FenceGate::new();
        assert_eq!(gate.greatest(), None);
        for (number, passes) in [(5, true), (5, true), (4, false), (7, true), (6, false)] {
            assert_eq!(gate.admit(fence(number)).is_ok(), passes, "{number}");
        }
        assert_eq!(gate.greatest(), Some(fence(7)));
    }

    #[test]
    fn refusal_names_both_fences_and_runs_nothing() {
        let gate = FenceGate::starting_at(fence(42));
        let error = gate.run(fence(41), || panic!("it ran")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Fenced);
        assert!(error.is_fenced() && !error.is_lost() && !error.is_retryable());
        let text = error.to_string();
        assert!(text.contains("41") && text.contains("42"), "{text}");
    }

    #[test]
    fn an_effect_that_panics_leaves_the_door_shut() {
        let gate = FenceGate::new();
        let effect = || gate.run(fence(2), || panic!("in the middle of a write"));
        catch_unwind(AssertUnwindSafe(effect)).unwrap_err();
        assert!(gate.admit(fence(1)).unwrap_err().is_fenced());
        gate.admit(fence(2)).unwrap();
    }

    /// For any sequence of fences, the gate admits exactly those that are not smaller than all it
    /// admitted before.
    #[test]
    fn no_sequence_admits_a_smaller_fence() {
        for _ in 0..200 {
            let gate = FenceGate::new();
            let shown: Vec<u64> = (0..50).map(|_| 1 + SystemEntropy.next_u64() % 20).collect();
            let mut greatest = 0;
            for number in &shown {
                let passed = gate.admit(fence(*number)).is_ok();
                assert_eq!(passed, *number >= greatest, "{number} of {shown:?}");
                greatest = greatest.max(*number);
            }
        }
    }

    #[test]
    fn effects_of_threads_follow_fence_order() {
        const THREADS: u64 = 8;
        const EACH: u64 = 500;
        let gate = FenceGate::new();
        let log = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for first in 1..=THREADS {
                let (gate, log) = (&gate, &log);
                scope.spawn(move || {
                    for step in 0..EACH {
                        let mine = fence(first + step * THREADS);
                        // Read and written in two steps, which only the gate keeps together.
                        let _ = gate.run(mine, || {
                            let length = log.lock().unwrap().len();
                            thread::yield_now();
                            let mut log = log.lock().unwrap();
                            assert_eq!(log.len(), length, "another effect ran meanwhile");
                            log.push(mine);
                        });
                    }
                });
            }
        });
        let log = log.into_inner().unwrap();
        assert!(log.is_sorted(), "a smaller fence was let in late");
        assert_eq!(log.last(), Some(&fence(THREADS * EACH)));
        assert_eq!(gate.greatest(), log.last().copied());
    }

    /// Once the gate has admitted a greater fence, no effect of a smaller one is still running.
    #[test]
    fn fence_off_waits_for_a_smaller_fences_effect() {
        let gate = FenceGate::new();
        let written = AtomicBool::new(false);
        let (begun, begins) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let effect = || {
                    begun.send(()).unwrap();
                    #[expect(
                        clippy::disallowed_methods,
                        reason = "a call that does not wait gets the time to overtake"
                    )]
                    thread::sleep(Duration::from_millis(50));
                    written.store(true, Ordering::SeqCst);
                };
                gate.run(fence(1), effect).unwrap();
            });
            begins.recv().unwrap();
            pollster::block_on(gate.fence_off(fence(2))).unwrap();
            assert!(written.load(Ordering::SeqCst), "the call overtook a write");
        });
        assert!(gate.admit(fence(1)).is_err());
    }
}
