//! The clock and the random numbers that the code uses.

mod boxed;
pub mod clock;
mod locked;
pub(crate) mod platform;

pub use boxed::BoxFuture;
#[doc(inline)]
pub use leasehold_types::Entropy;
pub use locked::locked;

use std::sync::Arc;
use std::time::Duration;

use self::clock::{Clock, SystemClock};
use crate::types::{ClientId, ClientInfo};

/// The environment of the code: a clock and a source of random numbers. Tests replace both.
#[derive(Clone, Debug)]
pub struct Env {
    /// Reads time and waits for it.
    pub clock: Arc<dyn Clock>,
    /// Draws identities and random delays.
    pub entropy: Arc<dyn Entropy>,
}

impl Env {
    /// Returns a random span between `least` and `most`.
    pub fn random_span(&self, least: Duration, most: Duration) -> Duration {
        let width = u64::try_from(most.saturating_sub(least).as_nanos()).unwrap_or(u64::MAX);
        least + Duration::from_nanos(self.entropy.next_u64() % width.saturating_add(1).max(1))
    }

    /// Pauses a waiter that polls, for 10 to 50 ms. The pause is random, so that waiters spread out.
    pub async fn poll_pause(&self) {
        let pause = self.random_span(Duration::from_millis(10), Duration::from_millis(50));
        self.clock.sleep_until(self.clock.now() + pause).await;
    }

    /// Describes a new client in the calling process. `program` defaults to the executable's name.
    pub fn this_process(&self, program: Option<String>) -> ClientInfo {
        let host = platform::host_name().unwrap_or_else(|| "unknown".into());
        let executable = || {
            let path = std::env::current_exe().ok()?;
            Some(path.file_name()?.to_string_lossy().into_owned())
        };
        let program = program
            .or_else(executable)
            .unwrap_or_else(|| "unknown".into());
        let id = ClientId::random(&*self.entropy);
        ClientInfo::new(id, host, std::process::id(), program, self.clock.wall())
    }
}

impl Default for Env {
    /// Returns the system's clock and its random numbers.
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
        }
    }
}

/// The operating system's cryptographic random numbers, through one generator per thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn next_u64(&self) -> u64 {
        rand::random()
    }
}
