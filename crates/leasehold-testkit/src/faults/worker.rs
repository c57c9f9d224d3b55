use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

use leasehold::Guard;
use leasehold::blocking::Lock;
use leasehold::clock::{BootInstant, Clock as _, SystemClock};

use super::protected_resource::ResourceClient;

/// The pause between two looks at the guard during the work.
const LOOK: Duration = Duration::from_millis(10);

/// How long a worker on a thread stays inside at least.
const STAY: Duration = Duration::from_millis(10);

impl ResourceClient {
    /// Adds one to the records under `guard`, which `worker` asked for at `asked` and has just got. Reports everything to
    /// the resource. Stays inside for `least`, or for as long as the resource asks.
    ///
    /// The worker reads, works, checks that it still holds the lock, and writes. The write takes as long as the work, since
    /// no program can act in the same instant as its check.
    ///
    /// # Errors
    ///
    /// The resource is gone.
    pub fn work(
        &mut self,
        worker: usize,
        asked: BootInstant,
        guard: &Guard,
        least: Duration,
    ) -> io::Result<()> {
        let fence = guard.fence().get();
        let stay = self.granted(worker, fence, asked, SystemClock.now())?;
        let half = stay.max(least) / 2;
        let plain = self.plain_read()?;
        let base = self.read(fence)?;
        let end = SystemClock.now() + half;
        let mut valid_until = None;
        let still_valid = loop {
            let now = SystemClock.now();
            if !guard.is_valid() {
                break false;
            }
            valid_until = Some(now);
            if now >= end {
                break true;
            }
            pause(LOOK.min(end.since(now)));
        };
        if still_valid {
            pause(half);
            self.plain_add_one(plain)?;
        }
        // A program without this check would write now, and only the fence could stop it.
        if let Some(base) = base {
            self.add_one(fence, base)?;
        }
        let left = SystemClock.now();
        if guard.is_valid() {
            valid_until = Some(left);
        }
        self.left(fence, valid_until, left)
    }
}

/// Threads that take one lock again and again, and work under it.
#[derive(Debug)]
pub struct Workers {
    threads: Vec<JoinHandle<io::Result<()>>>,
    stop: Arc<AtomicBool>,
}

impl Workers {
    /// Starts `count` threads, which use the resource at `path`. `lock` returns the lock of each, with a client of its own.
    ///
    /// # Panics
    ///
    /// If the resource is gone, or a thread cannot be started.
    pub fn start(count: usize, path: &Path, lock: impl Fn(usize) -> Lock) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let threads = (0..count).map(|number| {
            let (lock, stop) = (lock(number), Arc::clone(&stop));
            let mut resource = ResourceClient::connect(path).expect("the resource");
            let work = move || {
                while !stop.load(Ordering::SeqCst) {
                    let asked = SystemClock.now();
                    match lock.acquire() {
                        Ok(guard) => {
                            resource.work(number, asked, &guard, STAY)?;
                            // The grants to others show whether the lock was released.
                            drop(guard.release());
                        }
                        Err(error) => resource.refused(number, &error.to_string())?,
                    }
                }
                Ok(())
            };
            let thread = Builder::new().name(format!("worker {number}"));
            thread.spawn(work).expect("a thread")
        });
        let threads = threads.collect();
        Self { threads, stop }
    }

    /// Ends the workers, each after its round.
    ///
    /// # Panics
    ///
    /// If one of them failed.
    pub fn stop(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in std::mem::take(&mut self.threads) {
            thread.join().expect("a worker").expect("the resource");
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

fn pause(span: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the work that takes time"
    )]
    sleep(span);
}
