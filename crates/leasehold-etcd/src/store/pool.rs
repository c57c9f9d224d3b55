use std::sync::Mutex;

use leasehold::clock::BootInstant;
use leasehold::store::{Term, locked};

/// A lease of this client. It holds one lock at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) id: i64,
    /// The TTL that the client asked for, in seconds.
    pub(super) seconds: i64,
    /// The last term that the server confirmed.
    pub(super) term: Term,
}

/// The leases of the client that hold no lock. Nothing renews them, so they end by themselves. A lease comes here only if the
/// server has answered all requests that name it: a late request would take effect.
#[derive(Debug, Default)]
pub(super) struct LeasePool(Mutex<Idle>);

#[derive(Debug, Default)]
struct Idle {
    leases: Vec<Lease>,
    /// Whether the client offered a lease.
    was_offered: bool,
    /// Whether it wanted one afterwards. A client that takes one lock leaves no lease behind.
    is_used: bool,
}

/// The most idle leases of a client.
const IDLE_MAX: usize = 64;

impl LeasePool {
    /// Takes the lease with this TTL that was renewed last.
    pub(super) fn take(&self, seconds: i64, now: BootInstant) -> Option<Lease> {
        let mut idle = locked(&self.0);
        idle.is_used |= idle.was_offered;
        idle.leases.retain(|lease| !lease.is_over(now));
        let fitting = idle.leases.iter().enumerate();
        let fitting = fitting.filter(|(_, lease)| lease.seconds == seconds);
        let (freshest, _) = fitting.max_by_key(|(_, lease)| lease.term.since)?;
        Some(idle.leases.swap_remove(freshest))
    }

    /// Returns whether a lease with this TTL would stay in the pool. Otherwise the caller revokes it in place of a release.
    pub(super) fn has_room(&self, seconds: i64, now: BootInstant) -> bool {
        let mut idle = locked(&self.0);
        idle.was_offered = true;
        let is_in_the_way = |lease: &&Lease| !lease.is_over(now) && lease.seconds == seconds;
        idle.is_used && idle.leases.iter().filter(is_in_the_way).count() < IDLE_MAX
    }

    /// Adds a lease. If there is no room, returns a lease that the caller has to revoke: this one, or one with another TTL.
    pub(super) fn put(&self, lease: Lease, now: BootInstant) -> Option<i64> {
        if !self.has_room(lease.seconds, now) {
            return Some(lease.id);
        }
        let leases = &mut locked(&self.0).leases;
        leases.retain(|lease| !lease.is_over(now));
        if leases.len() < IDLE_MAX {
            leases.push(lease);
            return None;
        }
        let others = leases.iter_mut();
        let mut others = others.filter(|other| other.seconds != lease.seconds);
        let surplus = others.next().map(|other| std::mem::replace(other, lease));
        Some(surplus.unwrap_or(lease).id)
    }

    /// Takes all leases.
    pub(super) fn drain(&self) -> Vec<i64> {
        let idle = std::mem::take(&mut locked(&self.0).leases);
        idle.into_iter().map(|lease| lease.id).collect()
    }
}

impl Lease {
    /// Returns whether it may end while an attempt uses it. A lock that is used more rarely is granted with a new lease.
    fn is_over(&self, now: BootInstant) -> bool {
        let ttl = self.term.ttl.unwrap_or_default();
        now.since(self.term.since) >= ttl / 2
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: BootInstant = BootInstant::from_nanos(100_000_000_000);

    fn lease(id: i64, seconds: i64, age: u64) -> Lease {
        let ttl = Duration::from_secs(seconds.unsigned_abs());
        let since = BootInstant::from_nanos((100 - age) * 1_000_000_000);
        Lease {
            id,
            seconds,
            term: Term::new(since, ttl),
        }
    }

    /// Returns the pool of a client that takes locks again and again.
    fn pool() -> LeasePool {
        let pool = LeasePool::default();
        assert_eq!(pool.put(lease(1, 30, 0), NOW), Some(1), "not wanted so far");
        assert_eq!(taken(&pool, 30), None);
        pool
    }

    fn taken(pool: &LeasePool, seconds: i64) -> Option<i64> {
        pool.take(seconds, NOW).map(|lease| lease.id)
    }

    #[test]
    fn freshest_lease_of_the_same_ttl_comes_first() {
        let pool = pool();
        for lease in [
            lease(1, 30, 9),
            lease(2, 30, 4),
            lease(3, 30, 5),
            lease(4, 60, 0),
        ] {
            assert_eq!(pool.put(lease, NOW), None);
        }
        let order = [2, 3, 1].map(Some).into_iter().chain([None]);
        assert!(order.eq((0..4).map(|_| taken(&pool, 30))));
        assert_eq!(pool.drain(), [4]);
    }

    #[test]
    fn old_lease_is_dropped() {
        let pool = pool();
        pool.put(lease(1, 30, 15), NOW);
        assert_eq!(taken(&pool, 30), None);
        assert!(pool.drain().is_empty());
    }

    #[test]
    fn pool_has_a_bound() {
        let pool = pool();
        for id in 0..64 {
            assert!(pool.has_room(30, NOW));
            assert_eq!(pool.put(lease(id, 30, 1), NOW), None);
        }
        assert!(!pool.has_room(30, NOW) && pool.has_room(60, NOW));
        assert_eq!(pool.put(lease(64, 30, 0), NOW), Some(64));
        assert_eq!(
            pool.put(lease(65, 60, 0), NOW),
            Some(0),
            "another TTL gives way"
        );
        assert_eq!(pool.drain().len(), 64);
    }
}
