use std::sync::Mutex;

use crate::env::clock::BootInstant;
use crate::env::locked;

/// The releases of a client that its store did not confirm: when each of these leases ends by itself.
#[derive(Debug, Default)]
pub(super) struct UnconfirmedReleases(Mutex<Vec<BootInstant>>);

impl UnconfirmedReleases {
    /// Adds a lease that ends at `end`.
    pub(super) fn add(&self, end: BootInstant, now: BootInstant) {
        let mut ends = locked(&self.0);
        if ends.len() == ends.capacity() {
            ends.retain(|end| now < *end);
        }
        ends.push(end);
    }

    /// Returns how many of the leases may still last at `now`.
    pub(super) fn count(&self, now: BootInstant) -> usize {
        let ends = locked(&self.0);
        ends.iter().filter(|end| now < **end).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_that_ended_are_forgotten() {
        let releases = UnconfirmedReleases::default();
        let at = BootInstant::from_nanos;
        for now in 0..1_000 {
            releases.add(at(now + 10), at(now));
            assert_eq!(releases.count(at(now)) as u64, (now + 1).min(10));
        }
        assert!(locked(&releases.0).capacity() < 100);
        assert_eq!(releases.count(at(2_000)), 0);
    }
}
