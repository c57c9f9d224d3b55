use super::*;

const TIMES: LeaseTimes = LeaseTimes {
    ttl: Duration::from_secs(30),
    margin: Some(Duration::from_secs(3)),
    max_hold: None,
};

fn at(secs: u64) -> BootInstant {
    BootInstant::from_nanos(secs * 1_000_000_000)
}

#[test]
fn the_deadline_counts_from_sending_and_keeps_the_margin() {
    let mut lease = Lease::granted(TIMES, at(100), Duration::ZERO);
    assert_eq!(lease.deadline(), Some(at(127)));
    assert_eq!(lease.renew_at(), Some(at(110)));
    assert_eq!(lease.renewed(at(110), at(126)), Ok(()));
    assert_eq!(
        lease.deadline(),
        Some(at(137)),
        "from sending, not from the answer"
    );
}

#[test]
fn a_deadline_that_passed_is_final_even_if_a_renewal_succeeds_later() {
    let mut lease = Lease::granted(TIMES, at(100), Duration::ZERO);
    lease.renewing();
    assert_eq!(lease.renewed(at(126), at(127)), Err(LostReason::Expired));
    assert_eq!(lease.renewed(at(126), at(126)), Err(LostReason::Expired));
    assert_eq!(lease.check(at(100)), Err(LostReason::Expired));
    assert_eq!(lease.renew_at(), None);
}

#[test]
fn a_late_confirmation_of_an_early_renewal_never_moves_the_deadline_back() {
    let mut lease = Lease::granted(TIMES, at(100), Duration::ZERO);
    lease.renewed(at(115), at(116)).unwrap();
    lease.renewed(at(110), at(117)).unwrap();
    assert_eq!(lease.deadline(), Some(at(142)));
}

#[test]
fn a_resumed_lease_has_the_deadline_it_had_and_no_more_rights() {
    let mut late = Lease::resumed(TIMES, at(127), None);
    assert_eq!(late.check(at(126)), Ok(()));
    assert_eq!(late.renewed(at(126), at(127)), Err(LostReason::Expired));
    assert_eq!(late.renewed(at(126), at(126)), Err(LostReason::Expired));
    let mut lease = Lease::resumed(TIMES, at(127), Some(at(140)));
    assert_eq!(lease.renewed(at(120), at(121)), Ok(()));
    assert_eq!(lease.deadline(), Some(at(140)), "the whole hold has an end");
    assert_eq!(lease.check(at(140)), Err(LostReason::MaxHold));
}

#[test]
fn a_resumed_lease_with_a_shorter_ttl_is_believed_for_no_longer() {
    let mut lease = Lease::resumed(TIMES, at(1_000), None);
    lease.renewed(at(100), at(101)).unwrap();
    assert_eq!(lease.deadline(), Some(at(127)));
    let next = lease.renew_at().unwrap();
    assert!(next > at(100) && next <= at(111), "{next:?}");
    lease.renewed(at(99), at(102)).unwrap();
    assert_eq!(lease.deadline(), Some(at(127)), "as any from then on");
}

#[test]
fn doubt_retries_soon_and_ends_with_a_confirmation() {
    let mut lease = Lease::granted(TIMES, at(100), Duration::ZERO);
    lease.doubtful(at(111)).unwrap();
    assert!(lease.is_in_doubt());
    assert_eq!(lease.renew_at(), Some(at(112)));
    assert_eq!(lease.deadline(), Some(at(127)), "doubt moves nothing");
    lease.renewed(at(112), at(113)).unwrap();
    assert!(!lease.is_in_doubt());
}

#[test]
fn an_expired_lease_says_why_it_was_not_renewed() {
    let granted = || Lease::granted(TIMES, at(100), Duration::ZERO);
    let mut slept = granted();
    assert_eq!(slept.check(at(128)), Err(LostReason::StoodStill));
    let mut waited = granted();
    waited.renewing();
    assert_eq!(waited.check(at(128)), Err(LostReason::Expired));
    let mut failed = granted();
    failed.renewing();
    failed.doubtful(at(112)).unwrap();
    failed.renewing();
    assert_eq!(failed.check(at(128)), Err(LostReason::Unreachable));
}

#[test]
fn the_first_reason_of_a_loss_stays() {
    let mut lease = Lease::granted(TIMES, at(100), Duration::ZERO);
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
    let mut lease = Lease::granted(times, at(100), Duration::ZERO);
    assert_eq!(lease.deadline(), Some(at(127)));
    lease.renewed(at(120), at(120)).unwrap();
    assert_eq!(lease.deadline(), Some(at(140)));
    assert_eq!(lease.renew_at(), None, "the lease outlives the hold");
    assert_eq!(lease.check(at(140)), Err(LostReason::MaxHold));
}

#[test]
fn a_lock_held_by_the_kernel_has_no_deadline_but_is_looked_after() {
    let times = LeaseTimes {
        margin: None,
        ..TIMES
    };
    let mut lease = Lease::granted(times, at(100), Duration::ZERO);
    assert_eq!(lease.deadline(), None);
    assert_eq!(lease.check(at(1_000_000)), Ok(()));
    assert_eq!(lease.renew_at(), Some(at(110)));
}
