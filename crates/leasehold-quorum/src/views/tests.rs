use std::time::Duration;

use crate::tests::values::RandomEntropy;
use leasehold_types::{ClientId, Mode, Owner};

use super::*;

fn owner() -> Owner {
    Owner::random(ClientId::random(&RandomEntropy), &RandomEntropy)
}

fn held(owner: Owner, remaining: u64) -> Holder {
    let mut holder = Holder::of(owner, Mode::Exclusive);
    holder.remaining = Some(Duration::from_secs(remaining));
    holder
}

fn answers<T>(given: Vec<T>) -> Answers<T> {
    let failures = Vec::new();
    Answers { given, failures }
}

#[test]
fn majority_decides_on_holder_and_time() {
    let (holder, stray) = (owner(), owner());
    let given = vec![
        vec![held(holder, 9)],
        vec![held(stray, 99)],
        vec![held(holder, 5)],
        vec![held(holder, 7)],
        vec![],
    ];
    let shown = holders(answers(given)).unwrap();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].owner, Some(holder));
    assert_eq!(shown[0].remaining, Some(Duration::from_secs(5)));
}

#[test]
fn broken_lease_is_whole_on_no_majority() {
    let owner = owner();
    let shown = |broken: usize| {
        let given = (0..5).map(|member| {
            let mut view = held(owner, 9);
            view.broken = member < broken;
            vec![view]
        });
        holders(answers(given.collect())).unwrap()[0].broken
    };
    assert_eq!([0, 2, 3, 5].map(shown), [false, false, true, true]);
}

#[test]
fn listings_count_the_members_of_holders() {
    let (first, second) = (owner(), owner());
    // The holder that most members name is not the first in order.
    let (one, two) = (first.max(second), first.min(second));
    let lock = |name: &str, owner| ListedLock::new(Key::new(name).unwrap(), vec![held(owner, 9)]);
    let given = vec![
        LockListing::new(vec![lock("a", one), lock("b", two)], false),
        LockListing::new(vec![lock("a", two), lock("c", one)], true),
        LockListing::new(vec![lock("a", one)], false),
    ];
    let all = list_locks(answers(given.clone()), 9).unwrap();
    let names: Vec<_> = all.locks.iter().map(|lock| lock.key.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(all.more, "a member left some out");
    let sights = all.locks[0].holders.iter();
    let sights: Vec<_> = sights
        .map(|sight| (sight.holder.owner, sight.members))
        .collect();
    assert_eq!(sights, [(Some(one), 2), (Some(two), 1)]);
    let limited = list_locks(answers(given[..1].to_vec()), 1).unwrap();
    assert_eq!((limited.locks.len(), limited.more), (1, true));
}

#[test]
fn listing_of_a_minority_is_known_as_such() {
    let lock = ListedLock::new(Key::new("a").unwrap(), vec![held(owner(), 9)]);
    let listing = LockListing::new(vec![lock], false);
    let failed = |id: &str, kind| (MemberId::new(id), Err(Error::new(kind, "gone")));
    let with = |kind| {
        let given = (MemberId::new("a"), Ok(listing.clone()));
        Answers::new([given, failed("b", kind), failed("c", kind)])
    };
    let listed = list_locks(with(ErrorKind::Unreachable), 9).unwrap();
    assert_eq!((listed.locks.len(), listed.failures.len()), (1, 2));
    assert!(!listed.has_majority());
    let refused = list_locks(with(ErrorKind::Refused), 9).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    let silent = ["a", "b"].map(|id| failed(id, ErrorKind::Unreachable));
    assert!(list_locks(Answers::new(silent), 9).is_err());
}

#[test]
fn views_need_a_majority_of_answers() {
    let failed = |id: &str| {
        let error = Error::new(ErrorKind::Unreachable, "gone");
        (MemberId::new(id), Err::<BrokenLease, _>(error))
    };
    let given = |id: &str| (MemberId::new(id), Ok(BrokenLease::new(false, None)));
    let error = broken(Answers::new([given("a"), failed("b"), failed("c")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    let two = broken(Answers::new([given("a"), given("b"), failed("c")])).unwrap();
    assert_eq!(two.members, 2);
    let only = broken(Answers::new([failed("a")])).unwrap_err();
    assert_eq!(only.kind(), ErrorKind::Unreachable);
}
