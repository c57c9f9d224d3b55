//! When leases are renewed if every renewal succeeds.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;

const TIMES: LeaseTimes = LeaseTimes {
    ttl: Duration::from_secs(30),
    delay: Duration::ZERO,
    max_hold: None,
};

fn term(secs: u64) -> Term {
    Term::new(at(secs), TIMES.ttl)
}

fn at(secs: u64) -> BootInstant {
    BootInstant::from_nanos(secs * 1_000_000_000)
}

/// Keeps a lease until `end`, with each renewal a random amount too early or too late. Returns when the
/// renewals were sent, after the time of the granted request.
fn kept(
    times: LeaseTimes,
    granted: BootInstant,
    end: BootInstant,
    random: &mut StdRng,
) -> Vec<BootInstant> {
    let early = times.early();
    let spread = random.random_range(Duration::ZERO..=times.spread());
    let mut lease = Lease::granted(times, Term::new(granted, times.ttl), spread);
    let first = lease.renew_at().unwrap();
    let (mut sent, mut now) = (vec![granted], granted);
    while now < end {
        let due = lease.renew_at().unwrap();
        let since_first = due.since(first).as_nanos();
        assert_eq!(
            since_first % times.interval().as_nanos(),
            0,
            "off the interval"
        );
        now = due - early + random.random_range(Duration::ZERO..=early * 2);
        assert!(lease.is_due(now));
        sent.push(now);
        lease.renewed(Term::new(now, times.ttl), now).unwrap();
    }
    sent
}

#[test]
fn simultaneous_leases_spread_their_renewals() {
    const LEASES: u32 = 10_000;
    // With the default TTL, a part is one second.
    const PARTS_OF_TEN_TTLS: usize = 300;
    let mut random = StdRng::seed_from_u64(1);
    for ttl in [100, 3_000, 30_000, 60_000].map(Duration::from_millis) {
        let times = LeaseTimes {
            ttl,
            delay: Duration::ZERO,
            ..TIMES
        };
        let (began, part) = (at(100), ttl / 30);
        let mut renewals = vec![0; PARTS_OF_TEN_TTLS];
        for n in 0..LEASES {
            let granted = began + part * n / LEASES;
            let sent = kept(times, granted, began + ttl * 10, &mut random);
            for (before, after) in sent.iter().zip(&sent[1..]) {
                assert!(after.since(*before) < ttl / 2, "late, of {ttl:?}");
                let place = after.since(began).as_nanos() / part.as_nanos();
                if let Some(count) = renewals.get_mut(usize::try_from(place).unwrap()) {
                    *count += 1;
                }
            }
        }
        let mean = renewals.iter().sum::<usize>() / PARTS_OF_TEN_TTLS;
        let most = *renewals.iter().max().unwrap();
        assert!(most <= 2 * mean, "{most} at once, {mean} in the mean");
    }
}

#[test]
fn early_or_late_renewal_keeps_the_interval() {
    let mut lease = Lease::granted(TIMES, term(100), Duration::ZERO);
    lease.renewed(term(103), at(103)).unwrap();
    assert_eq!(lease.renew_at(), Some(at(110)), "it was not sent for that");
    lease.uncertain(at(111)).unwrap();
    lease.renewed(term(122), at(123)).unwrap();
    assert_eq!(lease.renew_at(), Some(at(130)));
    lease.renewed(term(130), at(130)).unwrap();
    assert_eq!(lease.renew_at(), Some(at(140)));
}

#[test]
fn lease_is_not_due_before_its_early_window() {
    let lease = Lease::granted(TIMES, term(100), Duration::ZERO);
    assert!(lease.is_due(at(110) - TIMES.early()));
    assert!(!lease.is_due(at(110) - TIMES.early() - Duration::from_nanos(1)));
}
