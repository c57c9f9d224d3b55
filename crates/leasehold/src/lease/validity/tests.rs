use super::*;

const TIMES: LeaseTimes = LeaseTimes {
    ttl: Duration::from_secs(30),
    delay: Duration::ZERO,
    max_hold: None,
};

fn at(secs: u64) -> BootInstant {
    BootInstant::from_nanos(secs * 1_000_000_000)
}

/// The term of a lease that ends at the deadline of 27 s.
fn term(secs: u64) -> Term {
    Term::new(at(secs), TIMES.ttl + Term::RESOLUTION)
}

#[test]
fn deadline_counts_from_sending_minus_the_margin() {
    let mut lease = Lease::granted(TIMES, term(100), Duration::ZERO);
    assert_eq!(lease.deadline(), Some(at(127)));
    assert_eq!(lease.renew_at(), Some(at(110)));
    assert_eq!(lease.renewed(term(110), at(126)), Ok(()));
    assert_eq!(
        lease.deadline(),
        Some(at(137)),
        "from sending, not from the answer"
    );
}

#[test]
fn passed_deadline_is_final_despite_a_later_renewal() {
    let mut lease = Lease::granted(TIMES, term(100), Duration::ZERO);
    lease.renewing();
    assert_eq!(lease.renewed(term(126), at(127)), Err(LostReason::Expired));
    assert_eq!(lease.renewed(term(126), at(126)), Err(LostReason::Expired));
    assert_eq!(lease.check(at(100)), Err(LostReason::Expired));
    assert_eq!(lease.renew_at(), None);
}

#[test]
fn late_confirmation_never_moves_the_deadline_back() {
    let mut lease = Lease::granted(TIMES, term(100), Duration::ZERO);
    lease.renewed(term(115), at(116)).unwrap();
    lease.renewed(term(110), at(117)).unwrap();
    assert_eq!(lease.deadline(), Some(at(142)));
}

#[test]
fn resumed_lease_keeps_its_deadline() {
    let mut late = Lease::resumed(TIMES, at(127), None);
    assert_eq!(late.check(at(126)), Ok(()));
    assert_eq!(late.renewed(term(126), at(127)), Err(LostReason::Expired));
    assert_eq!(late.renewed(term(126), at(126)), Err(LostReason::Expired));
    let mut lease = Lease::resumed(TIMES, at(127), Some(at(140)));
    assert_eq!(lease.renewed(term(120), at(121)), Ok(()));
    assert_eq!(lease.deadline(), Some(at(140)), "the whole hold has an end");
    assert_eq!(lease.check(at(140)), Err(LostReason::MaxHold));
}

#[test]
fn shorter_ttl_shortens_a_resumed_lease() {
    let mut lease = Lease::resumed(TIMES, at(1_000), None);
    lease.renewed(term(100), at(101)).unwrap();
    assert_eq!(lease.deadline(), Some(at(127)));
    let next = lease.renew_at().unwrap();
    assert!(next > at(100) && next <= at(111), "{next:?}");
    lease.renewed(term(99), at(102)).unwrap();
    assert_eq!(lease.deadline(), Some(at(127)), "as any from then on");
}

#[test]
fn doubt_retries_soon_and_ends_with_a_confirmation() {
    let mut lease = Lease::granted(TIMES, term(100), Duration::ZERO);
    lease.uncertain(at(111)).unwrap();
    assert!(lease.is_in_doubt());
    assert_eq!(lease.renew_at(), Some(at(112)));
    assert_eq!(lease.deadline(), Some(at(127)), "doubt moves nothing");
    lease.renewed(term(112), at(113)).unwrap();
    assert!(!lease.is_in_doubt());
}

#[test]
fn expired_lease_gives_the_reason() {
    let granted = || Lease::granted(TIMES, term(100), Duration::ZERO);
    let mut slept = granted();
    assert_eq!(slept.check(at(128)), Err(LostReason::Paused));
    let mut waited = granted();
    waited.renewing();
    assert_eq!(waited.check(at(128)), Err(LostReason::Expired));
    let mut failed = granted();
    failed.renewing();
    failed.uncertain(at(112)).unwrap();
    failed.renewing();
    assert_eq!(failed.check(at(128)), Err(LostReason::Unreachable));
}

#[test]
fn the_first_reason_of_a_loss_stays() {
    let mut lease = Lease::granted(TIMES, term(100), Duration::ZERO);
    assert_eq!(lease.lose(LostReason::Taken), LostReason::Taken);
    assert_eq!(lease.lose(LostReason::Gone), LostReason::Taken);
    assert_eq!(lease.check(at(500)), Err(LostReason::Taken));
}

#[test]
fn max_hold_ends_a_guard_and_its_renewals() {
    let times = LeaseTimes {
        max_hold: Some(Duration::from_secs(40)),
        ..TIMES
    };
    let mut lease = Lease::granted(times, term(100), Duration::ZERO);
    assert_eq!(lease.deadline(), Some(at(127)));
    lease.renewed(term(120), at(120)).unwrap();
    assert_eq!(lease.deadline(), Some(at(140)));
    assert_eq!(lease.renew_at(), None, "the lease outlives the hold");
    assert_eq!(lease.check(at(140)), Err(LostReason::MaxHold));
}

#[test]
fn kernel_lock_has_no_deadline_but_is_checked() {
    let mut lease = Lease::granted(TIMES, Term::endless(at(100)), Duration::ZERO);
    assert_eq!(lease.deadline(), None);
    assert_eq!(lease.check(at(1_000_000)), Ok(()));
    assert_eq!(lease.renew_at(), Some(at(110)));
}
