//! What stores of several servers promise.

use leasehold::store::{Exclusion, LeaseTerms, Store as _};
use leasehold_redis::{RedisStore, TrustRules};

/// Returns a store of servers that no test contacts.
fn store_of(count: u16) -> RedisStore {
    RedisStore::new((1..=count).map(|port| format!("redis://127.0.0.1:{port}"))).unwrap()
}

#[test]
fn majority_is_promised_only_under_trust_rules() {
    let promised = |store: RedisStore| store.guarantees().exclusion;
    assert_eq!(promised(store_of(1)), Exclusion::OneServer);
    assert_eq!(promised(store_of(2)), Exclusion::EveryMember);
    assert_eq!(promised(store_of(3)), Exclusion::Majority);
    let logged = |count| store_of(count).trust(TrustRules::Logged);
    assert_eq!(promised(logged(3)), Exclusion::EveryMember);
    assert_eq!(promised(logged(5)), Exclusion::EveryMember);
    let enforced = store_of(2).trust(TrustRules::Enforced);
    assert_eq!(promised(enforced), Exclusion::Majority);
}

#[test]
fn one_trusted_server_limits_the_ttl() {
    let longest = |store: RedisStore| store.terms().ttl_max;
    assert_eq!(longest(store_of(1)), LeaseTerms::TTL_MAX);
    let enforced = store_of(1).trust(TrustRules::Enforced);
    assert_eq!(longest(enforced), RedisStore::MAX_TTL_MAX);
}
