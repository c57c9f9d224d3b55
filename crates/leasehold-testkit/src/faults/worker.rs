use std::io;
use std::thread::sleep;
use std::time::Duration;

use leasehold::Guard;
use leasehold::clock::{BootInstant, Clock as _, SystemClock};

use super::protected_resource::ResourceClient;

/// The pause between two looks at the guard during the work.
const LOOK: Duration = Duration::from_millis(10);

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

fn pause(span: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the work that takes time"
    )]
    sleep(span);
}
