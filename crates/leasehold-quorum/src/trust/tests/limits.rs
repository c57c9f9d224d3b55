//! The limits of a quorum, which a client learns from its members.

use leasehold_types::ErrorKind;

use super::*;
use crate::tests::values::lock_request;

const LONG: Duration = Duration::from_secs(600);
const STRICT: Duration = Duration::from_millis(50);

/// A quorum whose members `strict` have other limits than the client would initialize it with.
fn stating(strict: &[usize], max_ttl: Duration, tolerance: Duration) -> Fixture {
    let mut fixture = Fixture::new(3);
    for member in strict {
        let record = fixture.servers[*member].member_record.as_mut().unwrap();
        record.set = MemberSet::new(ids(3), max_ttl, tolerance);
    }
    fixture
}

#[test]
fn members_state_the_limits() {
    let mut fixture = stating(&[0, 1, 2], LONG, TOLERANCE / 2);
    fixture.meet_all();
    assert!((0..3).all(|member| fixture.counts(member).is_ok()));
    let refused = |ttl| fixture.trust.check_ttl(&lock_request(ttl)).unwrap_err();
    assert!(fixture.trust.check_ttl(&lock_request(LONG)).is_ok());
    assert!(
        fixture
            .trust
            .check_ttl(&lock_request(TOLERANCE * 5))
            .is_ok()
    );
    for ttl in [
        LONG + Duration::from_millis(1),
        TOLERANCE * 5 - Duration::from_millis(1),
    ] {
        let error = refused(ttl);
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("out of bounds"), "{error}");
    }
    let term = fixture.trust.term(&lock_request(LONG), fixture.ours());
    assert_eq!(term.ttl, Some(LONG - TOLERANCE));
}

#[test]
fn most_members_decide_the_limits() {
    for strict in [[0, 1], [0, 2], [1, 2]] {
        let mut fixture = stating(&strict, MAX_TTL, STRICT);
        fixture.meet_all();
        for member in 0..3 {
            let is_other = matches!(
                fixture.counts(member),
                Err(UntrustedReason::OtherSet { .. })
            );
            assert_eq!(is_other, !strict.contains(&member), "{strict:?}");
        }
    }
}

#[test]
fn longer_limit_lengthens_the_wait() {
    let mut fixture = stating(&[0, 1, 2], LONG, TOLERANCE);
    fixture.restart(1, false);
    fixture.meet_all();
    fixture.keep_member_records();
    fixture.pass(300);
    fixture.meet_all();
    assert!(matches!(
        fixture.counts(1),
        Err(UntrustedReason::Forgot { .. })
    ));
    fixture.pass(310);
    fixture.meet_all();
    assert!(fixture.counts(1).is_ok());
}

#[test]
fn clocks_are_judged_by_the_stated_tolerance() {
    let apart = TOLERANCE.as_micros() as i64 / 2;
    let mut strict = stating(&[0, 1, 2], MAX_TTL, STRICT);
    let mut loose = stating(&[0, 1, 2], MAX_TTL, TOLERANCE * 4);
    strict.servers[2].clock = apart;
    loose.servers[2].clock = apart * 4;
    strict.meet_all();
    loose.meet_all();
    let verdict = strict.counts(2);
    assert!(
        matches!(verdict, Err(UntrustedReason::WrongClock { .. })),
        "{verdict:?}"
    );
    assert!(loose.counts(2).is_ok());
}

#[test]
fn no_ttl_is_refused_before_a_majority_answers() {
    let mut fixture = stating(&[0, 1, 2], LONG, TOLERANCE);
    for member in [0, 1] {
        assert!(fixture.trust.check_ttl(&lock_request(LONG * 2)).is_ok());
        fixture.meet(member);
    }
    assert!(fixture.trust.check_ttl(&lock_request(LONG * 2)).is_err());
    assert!(fixture.trust.check_ttl(&lock_request(LONG)).is_ok());
}
