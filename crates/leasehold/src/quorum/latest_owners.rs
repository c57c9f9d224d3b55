use std::collections::VecDeque;

use crate::owner::{Owner, OwnerSet};

/// The owners that were put in last, up to a number.
#[derive(Debug, Default)]
pub(crate) struct LatestOwners {
    owners: OwnerSet,
    /// In which order they came, and those that were taken out meanwhile.
    order: VecDeque<Owner>,
}

impl LatestOwners {
    const MAX: usize = 1024;

    /// Puts one in; the earliest gives way where there are too many.
    pub(crate) fn insert(&mut self, owner: Owner) {
        if self.order.len() == Self::MAX
            && let Some(earliest) = self.order.pop_front()
        {
            self.owners.remove(&earliest);
        }
        self.order.push_back(owner);
        self.owners.insert(owner);
    }

    pub(crate) fn remove(&mut self, owner: Owner) {
        self.owners.remove(&owner);
    }

    pub(crate) fn contains(&self, owner: Owner) -> bool {
        self.owners.contains(&owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::SystemEntropy;
    use crate::owner::ClientId;

    #[test]
    fn the_latest_are_known_and_earlier_ones_forgotten() {
        let client = ClientId::random(&SystemEntropy);
        let owners: Vec<Owner> = (0..5 * LatestOwners::MAX)
            .map(|_| Owner::random(client, &SystemEntropy))
            .collect();
        let mut latest = LatestOwners::default();
        for owner in &owners {
            latest.insert(*owner);
        }
        let (earlier, last) = owners.split_at(owners.len() - LatestOwners::MAX);
        assert!(last.iter().all(|owner| latest.contains(*owner)));
        assert!(!earlier.iter().any(|owner| latest.contains(*owner)));
        // One and the same, in and out again.
        for _ in 0..5 * LatestOwners::MAX {
            latest.insert(owners[0]);
            assert!(latest.contains(owners[0]));
            latest.remove(owners[0]);
            assert!(!latest.contains(owners[0]));
        }
        assert_eq!(latest.owners.len(), 0);
        assert!(latest.order.len() <= LatestOwners::MAX);
    }
}
