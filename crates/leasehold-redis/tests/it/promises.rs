//! What quorums of servers promise.

use leasehold::{Exclusion, Quorum, Store, TrustRules};
use leasehold_redis::RedisMember;

/// A quorum of servers that are never asked.
fn quorum_of(count: u16) -> Quorum {
    let urls = (1..=count).map(|port| format!("redis://127.0.0.1:{port}"));
    Quorum::new(RedisMember::all(urls).unwrap()).unwrap()
}

#[test]
fn majority_is_promised_only_under_trust_rules() {
    let promised = |quorum: Quorum| quorum.guarantees().exclusion;
    assert_eq!(promised(quorum_of(1)), Exclusion::OneServer);
    assert_eq!(promised(quorum_of(2)), Exclusion::EveryMember);
    assert_eq!(promised(quorum_of(3)), Exclusion::Majority);
    let logged = |count| quorum_of(count).trust(TrustRules::Logged);
    assert_eq!(promised(logged(3)), Exclusion::EveryMember);
    assert_eq!(promised(logged(5)), Exclusion::EveryMember);
    let enforced = quorum_of(2).trust(TrustRules::Enforced);
    assert_eq!(promised(enforced), Exclusion::Majority);
}
