use std::fmt;

/// A source of random numbers.
pub trait Entropy: fmt::Debug + Send + Sync + 'static {
    /// Returns 64 unpredictable bits (or, in a simulation, the next bits of its seed).
    fn next_u64(&self) -> u64;
}

#[cfg(test)]
pub(crate) mod tests {
    use std::hash::{BuildHasher, RandomState};

    use super::*;

    /// Random numbers for tests, from the seeds of the standard library's hash maps.
    #[derive(Debug)]
    pub(crate) struct RandomEntropy;

    impl Entropy for RandomEntropy {
        fn next_u64(&self) -> u64 {
            RandomState::new().hash_one(0)
        }
    }
}
