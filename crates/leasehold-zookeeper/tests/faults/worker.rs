use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use leasehold::blocking::{Client, Guard, Lock};
use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold_testkit::faults::ResourceClient;
use leasehold_zookeeper::ZooKeeperStore;

/// The time of a lease.
const TTL: Duration = Duration::from_secs(2);

/// How long a worker waits for the lock before it reports that it did not get it.
const WAIT: Duration = Duration::from_secs(2);

/// Clients that take one lock again and again, each on a thread of its own.
pub(crate) struct Workers {
    threads: Vec<JoinHandle<io::Result<()>>>,
    stop: Arc<AtomicBool>,
}

impl Workers {
    pub(crate) fn start(count: usize, url: &str, resource: &Path) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..count).map(|number| {
            let client = Client::new(ZooKeeperStore::new(url).unwrap());
            let mut worker = Worker {
                number,
                resource: ResourceClient::connect(resource).unwrap(),
                lock: client.lock("the-record").ttl(TTL).wait(WAIT),
            };
            let stop = Arc::clone(&stop);
            let work = move || {
                while !stop.load(Ordering::SeqCst) {
                    worker.round()?;
                }
                Ok(())
            };
            let thread = std::thread::Builder::new().name(format!("worker {number}"));
            thread.spawn(work).unwrap()
        });
        Self {
            threads: threads.collect(),
            stop,
        }
    }

    /// Ends the workers, each after its round.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().expect("a worker").expect("the resource");
        }
    }
}

/// Adds one to the record again and again, each time under the lock, and reports everything to the resource.
struct Worker {
    number: usize,
    resource: ResourceClient,
    lock: Lock,
}

impl Worker {
    fn round(&mut self) -> io::Result<()> {
        let asked = SystemClock.now();
        let guard = match self.lock.acquire() {
            Ok(guard) => guard,
            Err(error) => return self.resource.refused(self.number, &error.to_string()),
        };
        let (granted, fence) = (SystemClock.now(), guard.fence().get());
        self.resource.granted(self.number, fence, asked, granted)?;
        let mut valid_until = None;
        let left = self.work(&guard, fence, &mut valid_until)?;
        self.resource.left(fence, valid_until, left)?;
        // The grants to others show whether it was released.
        drop(guard.release());
        Ok(())
    }

    /// Reads, works, and writes.
    fn work(
        &mut self,
        guard: &Guard,
        fence: u64,
        valid_until: &mut Option<BootInstant>,
    ) -> io::Result<BootInstant> {
        let base = self.resource.read(fence)?;
        let end = SystemClock.now() + Duration::from_millis(2 + fence % 20);
        loop {
            let now = SystemClock.now();
            if !guard.is_valid() {
                break;
            }
            *valid_until = Some(now);
            if now >= end {
                break;
            }
            pause(Duration::from_millis(2));
        }
        // Only the fence stops a worker that was lost here.
        if let Some(base) = base {
            self.resource.add_one(fence, base)?;
        }
        let left = SystemClock.now();
        if guard.is_valid() {
            *valid_until = Some(left);
        }
        Ok(left)
    }
}

fn pause(span: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the work that takes time"
    )]
    std::thread::sleep(span);
}
