use std::fmt;
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};

/// What the code takes from its surroundings: time and chance. Tests replace both.
#[derive(Clone, Debug)]
pub struct Ambient {
    /// Reads time and waits for it.
    pub clock: Arc<dyn Clock>,
    /// Draws identities and random delays.
    pub entropy: Arc<dyn Entropy>,
}

impl Default for Ambient {
    /// The system's clock and its random numbers.
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
        }
    }
}

/// A source of random numbers.
pub trait Entropy: fmt::Debug + Send + Sync + 'static {
    /// 64 unpredictable bits (or, in a simulation, the next ones of its seed).
    fn next_u64(&self) -> u64;
}

/// The operating system's cryptographic random numbers, by way of a generator per thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn next_u64(&self) -> u64 {
        rand::random()
    }
}
