use leasehold::Mode;
use leasehold::store::Exclusion;

use crate::harness::Optional;

use super::fixture::{Fixture, LONG, OpenStore, busy, granted, released};

pub(crate) async fn s1_two_handles_grant_the_same_locks(fixture: &Fixture) {
    let (one, other) = (fixture.open(), fixture.open());
    let key = fixture.key();
    let (mine, theirs) = (fixture.request(&key, LONG), fixture.request(&key, LONG));
    granted(&one, &mine).await;
    busy(&other, &theirs).await;
    released(&one, &mine).await;
    granted(&other, &theirs).await;
    busy(&one, &fixture.request(&key, LONG)).await;
    released(&other, &theirs).await;
}

pub(crate) async fn s1_two_processes_grant_the_same_locks(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let (worker, _) = fixture.worker(&key, LONG);
    busy(&store, &fixture.request(&key, LONG)).await;
    worker.finish();
    let request = fixture.request(&key, LONG);
    granted(&store, &request).await;
    released(&store, &request).await;
}

pub(crate) async fn s2_guarantees_and_terms_never_change(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let before = (store.guarantees(), store.terms());
    let request = fixture.request(&key, LONG);
    granted(&store, &request).await;
    released(&store, &request).await;
    assert_eq!((store.guarantees(), store.terms()), before);
    let other = fixture.open();
    assert_eq!((other.guarantees(), other.terms()), before);
    let terms = store.terms();
    assert!(terms.ttl_min <= terms.ttl_max && terms.ttl_max >= LONG);
    // Otherwise a suite could avoid tests by claiming less of its store than is true.
    let (suite, exclusion) = (&fixture.suite, before.0.exclusion);
    let one_process = exclusion == Exclusion::Process;
    assert_eq!(
        suite.open_at.is_none(),
        one_process,
        "{exclusion:?}: a suite has `in_other_processes` exactly if the locks are not those of one process"
    );
    let one_machine = one_process || exclusion == Exclusion::Kernel;
    let breaks_network = suite.has_servers;
    let says_why_not = suite.without_network.is_some();
    let is_right = match one_machine {
        true => !breaks_network && !says_why_not,
        false => breaks_network != says_why_not,
    };
    assert!(
        is_right,
        "{exclusion:?}: the suite of a store has `behind_proxies`, or `without_network` and the reason, and neither if its \
         locks are those of one machine"
    );
}

pub(crate) async fn s4_optional_traits_are_those_the_suite_names(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let all = || Optional::ALL.iter().copied();
    let offered =
        |store: &OpenStore| -> Vec<bool> { all().map(|part| part.is_offered(&**store)).collect() };
    let named: Vec<bool> = all().map(|part| fixture.suite.offers(part)).collect();
    assert_eq!(offered(&store), named, "of {:?}", Optional::ALL);
    let request = fixture.request(&key, LONG);
    granted(&store, &request).await;
    released(&store, &request).await;
    assert_eq!(offered(&store), named, "after use");
    assert_eq!(offered(&fixture.open()), named, "opened again");
}

pub(crate) async fn s3_descriptions_and_errors_hold_no_credentials(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let request = fixture.request(&key, LONG).with_mode(Mode::Exclusive);
    granted(&store, &request).await;
    let mut texts = vec![
        store.store().to_string(),
        format!("{:?}", store.store()),
        format!("{:#?}", &*store),
    ];
    if let Some(inspection) = store.inspection() {
        texts.push(format!("{:?}", inspection.holders(&key).await));
    }
    released(&store, &request).await;
    assert!(!store.store().to_string().is_empty());
    for secret in fixture.harness.secrets() {
        for text in &texts {
            assert!(!text.contains(&secret), "a credential shows in {text}");
        }
    }
}
