use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold::env::Entropy;

use crate::time::Time;

/// Random numbers that follow from a seed (SplitMix64).
///
/// Each part of a run has its own stream of numbers. One more number in one part therefore does not change
/// the others.
#[derive(Clone, Debug)]
pub(crate) struct SimRng(Arc<AtomicU64>);

impl SimRng {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mixed = Self(Arc::new(AtomicU64::new(seed ^ stream.rotate_left(32))));
        Self(Arc::new(AtomicU64::new(mixed.next_u64())))
    }

    pub(crate) fn entropy(&self) -> Arc<dyn Entropy> {
        Arc::new(self.clone())
    }

    /// Returns a number from 0 to `end - 1`.
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.next_u64() % end
    }

    /// Returns an index into a list of `len` items.
    pub(crate) fn index(&self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns true with a probability of `percent` in a hundred.
    pub(crate) fn percent(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }

    /// Returns a time from `least` to `most`, both included.
    pub(crate) fn between(&self, least: Time, most: Time) -> Time {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// Returns a number from `-most` to `most`.
    pub(crate) fn around_zero(&self, most: i64) -> i64 {
        self.below(most as u64 * 2 + 1) as i64 - most
    }
}

impl Entropy for SimRng {
    fn next_u64(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
