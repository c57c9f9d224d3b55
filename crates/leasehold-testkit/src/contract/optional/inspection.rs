use leasehold::look::{LockListing, Pattern};
use leasehold::{Key, Mode};

use crate::contract::fixture::{Fixture, LONG, expires, granted, inspection, released};

pub(crate) async fn h1_holders_are_named_while_they_hold(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    let nobody = inspection(&other).holders(&key).await.expect("an answer");
    assert!(nobody.is_empty(), "{nobody:?}");
    let request = fixture.request_of(store.client(), &key, LONG);
    granted(&store, &request).await;
    let holders = inspection(&other).holders(&key).await.expect("an answer");
    let [holder] = holders.as_slice() else {
        panic!("one holder: {holders:?}")
    };
    assert_eq!(holder.owner, Some(request.owner));
    assert_eq!(holder.mode, Mode::Exclusive);
    assert_eq!(
        holder.since,
        Some(request.proposal),
        "not its client's start"
    );
    assert_eq!(holder.client.as_ref(), Some(&*request.client), "who it is");
    assert_eq!(holder.remaining.is_some(), expires(store.guarantees()));
    assert!(
        holder
            .remaining
            .is_none_or(|left| left <= LONG && left > LONG / 2)
    );
    released(&store, &request).await;
    if !store.guarantees().shared {
        return;
    }
    let readers = [fixture.shared(&key, LONG), fixture.shared(&key, LONG)];
    for reader in &readers {
        granted(&store, reader).await;
    }
    let mut named: Vec<_> = inspection(&other)
        .holders(&key)
        .await
        .expect("an answer")
        .into_iter()
        .map(|holder| (holder.mode, holder.owner))
        .collect();
    named.sort();
    let mut expected: Vec<_> = readers
        .iter()
        .map(|reader| (Mode::Shared, Some(reader.owner)))
        .collect();
    expected.sort();
    assert_eq!(named, expected);
    for reader in &readers {
        released(&store, reader).await;
    }
    assert!(
        inspection(&other)
            .holders(&key)
            .await
            .expect("an answer")
            .is_empty()
    );
}

pub(crate) async fn h4_listing_names_the_held_locks_that_match(fixture: &Fixture) {
    let (store, base) = (fixture.open(), fixture.key());
    let names: Vec<String> = ["/c", "/a1", "/a[2]", "/b1", "/a3"]
        .iter()
        .map(|end| format!("{base}{end}"))
        .collect();
    let keys = names
        .iter()
        .map(|name| Key::new(name).expect("a valid name"));
    let requests: Vec<_> = keys
        .map(|key| fixture.request_of(store.client(), &key, LONG))
        .collect();
    for request in &requests {
        granted(&store, request).await;
    }
    let list_locks = async |end: &str, limit: usize| {
        let pattern = Pattern::new(format!("{base}{end}")).expect("a pattern");
        inspection(&store)
            .list_locks(&pattern, limit)
            .await
            .expect("an answer")
    };
    let found = |listing: &LockListing| -> Vec<String> {
        let names = listing.locks.iter().map(|lock| lock.key.to_string());
        names
            .map(|name| name[base.as_str().len()..].to_owned())
            .collect()
    };
    let all = list_locks("/*", 9).await;
    assert_eq!(found(&all), ["/a1", "/a3", "/a[2]", "/b1", "/c"]);
    assert!(!all.more && all.failures.is_empty(), "{all:?}");
    let locations = fixture.harness.locations().len();
    assert_eq!(all.members, locations);
    for lock in &all.locks {
        let [sight] = lock.holders.as_slice() else {
            panic!("one holder: {lock:?}")
        };
        let request = requests.iter().find(|request| request.key == lock.key);
        assert_eq!(sight.holder.owner, request.map(|request| request.owner));
        let client = request.map(|request| (*request.client).clone());
        assert_eq!(sight.holder.client, client);
        assert_eq!(
            sight.holder.remaining.is_some(),
            expires(store.guarantees())
        );
        assert!(sight.members > locations / 2, "{sight:?}");
    }
    let some = list_locks("/?1", 9).await;
    assert_eq!(found(&some), ["/a1", "/b1"], "all that match, and no other");
    let first = list_locks("/*", 2).await;
    assert_eq!(found(&first), ["/a1", "/a3"]);
    assert!(first.more);
    assert!(!list_locks("/*", 5).await.more, "nothing is left out");
    assert_eq!(found(&list_locks("/a[2]", 9).await), ["/a[2]"]);
    for request in &requests {
        released(&store, request).await;
    }
    assert!(list_locks("*", 9).await.locks.is_empty());
}
