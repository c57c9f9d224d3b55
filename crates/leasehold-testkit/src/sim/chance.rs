use std::sync::Arc;
use std::time::Duration;

use leasehold::ambient::Entropy;

use crate::virtual_time::SeededEntropy;

/// A stream of decisions that follow from a seed. Each part of a world draws from its own, so that
/// one more draw in one part does not change all others.
#[derive(Clone, Debug)]
pub(crate) struct Chance(Arc<SeededEntropy>);

impl Chance {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mixed = SeededEntropy::new(seed ^ stream.rotate_left(32)).next_u64();
        Self(Arc::new(SeededEntropy::new(mixed)))
    }

    pub(crate) fn entropy(&self) -> Arc<dyn Entropy> {
        Arc::clone(&self.0) as Arc<dyn Entropy>
    }

    /// 0 to `end` - 1.
    pub(crate) fn below(&self, end: usize) -> usize {
        (self.0.next_u64() % end as u64) as usize
    }

    /// True in `percent` of a hundred cases.
    pub(crate) fn percent(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// `least` to `most` milliseconds, both included.
    pub(crate) fn millis(&self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.0.next_u64() % (most - least + 1))
    }

    /// `-most` to `most`.
    pub(crate) fn around_zero(&self, most: i64) -> i64 {
        let width = most as u64 * 2 + 1;
        (self.0.next_u64() % width) as i64 - most
    }
}
