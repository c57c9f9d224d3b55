//! Permits: each is a lock of its own.

use super::*;

fn permits() -> Permits {
    Permits::new(3).unwrap()
}

fn slot(number: u32) -> PermitSlot {
    PermitSlot::new(number, permits()).unwrap()
}

fn granted_slot(number: u32) -> Reply {
    Reply::Granted {
        fence: fence(7),
        slot: Some(slot(number)),
    }
}

fn start(fixture: &mut Fixture, wait: bool) -> (Arc<LockRequest>, OperationId) {
    let lock_request = Arc::new(
        fixture
            .lock_request(wait)
            .with_mode(Mode::Permit(permits())),
    );
    let id = fixture.acquire(&lock_request);
    (lock_request, id)
}

fn preferred_slot(fixture: &Fixture, member: usize) -> Option<PermitSlot> {
    match fixture.sent(member).last() {
        Some(Request::Acquire { preferred, .. }) => *preferred,
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_members_are_asked_for_one_permit() {
    let mut fixture = Fixture::new(3);
    start(&mut fixture, true);
    let preferred_slots: Vec<_> = (0..3)
        .map(|member| preferred_slot(&fixture, member))
        .collect();
    assert!(preferred_slots[0].is_some());
    assert!(preferred_slots.iter().all(|it| *it == preferred_slots[0]));
}

#[test]
fn only_grants_of_one_permit_add_up() {
    let mut fixture = Fixture::new(3);
    let (_, id) = start(&mut fixture, false);
    fixture.reply(0, granted_slot(0));
    fixture.reply(1, granted_slot(1));
    assert!(fixture.outcome(id).is_none());
    fixture.reply(2, granted_slot(1));
    assert_eq!(fixture.acquired(id).expect("a permit").slot, Some(slot(1)));
}

/// The move must not happen before the lease is held.
#[test]
fn holder_moves_to_its_permit() {
    let mut fixture = Fixture::new(3);
    let (_, id) = start(&mut fixture, false);
    fixture.reply(0, granted_slot(0));
    fixture.reply(1, granted_slot(1));
    assert!(fixture.kinds(0).is_empty());
    fixture.reply(2, granted_slot(1));
    fixture.acquired(id).expect("a permit");
    let [Request::Renew(leases)] = fixture.sent(0)[..] else {
        panic!("{:?}", fixture.sent(0));
    };
    assert_eq!(leases[0].slot, Some(slot(1)));
    assert!(fixture.kinds(1).is_empty());
}

#[test]
fn attempt_with_different_permits_is_busy() {
    let mut fixture = Fixture::new(3);
    let (_, id) = start(&mut fixture, false);
    (0..3).for_each(|member| drop(fixture.reply(member, granted_slot(member as u32))));
    assert!(matches!(fixture.outcome(id), Some(Outcome::Busy(_))));
    assert_eq!(fixture.kinds(1), ["release"]);
}

/// Waiters that hold each other's permits must not meet again at once.
#[test]
fn waiter_pauses_after_different_permits() {
    let mut fixture = Fixture::new(5);
    let (lock_request, _) = start(&mut fixture, true);
    for (member, number) in [(0, 0), (1, 1), (2, 0), (3, 1), (4, 2)] {
        fixture.reply(member, granted_slot(number));
    }
    for member in 0..5 {
        assert_eq!(fixture.kinds(member), ["requeue"]);
        fixture.reply(member, released(true));
        fixture.notify(member, &lock_request);
        assert!(fixture.kinds(member).is_empty(), "it pauses");
    }
    fixture.pass(10);
    for member in 0..5 {
        assert_eq!(preferred_slot(&fixture, member), Some(slot(0)));
    }
}

/// The first grant ended before the second came. Nothing has to give way.
#[test]
fn waiter_asks_at_once_after_a_late_grant() {
    let mut fixture = Fixture::new(3);
    let (lock_request, _) = start(&mut fixture, true);
    fixture.reply(0, granted_slot(0));
    fixture.pass_without_timers(9_500);
    fixture.reply(1, granted_slot(0));
    assert_eq!(fixture.kinds(0), ["requeue"]);
    fixture.reply(0, released(true));
    fixture.notify(0, &lock_request);
    assert_eq!(fixture.kinds(0), ["acquire"]);
}

#[test]
fn renewal_names_the_permit_of_the_lease() {
    let mut fixture = Fixture::new(3);
    let (lock_request, id) = start(&mut fixture, false);
    (0..3).for_each(|member| drop(fixture.reply(member, granted_slot(2))));
    let fence = fixture.acquired(id).expect("a permit").fence;
    let held = Held {
        request: lock_request,
        fence,
    };
    fixture.start(Operation::Renew(vec![held]));
    let [Request::Renew(leases)] = fixture.sent(1)[..] else {
        panic!("{:?}", fixture.sent(1));
    };
    assert_eq!(leases[0].slot, Some(slot(2)));
}

/// Differing rounds hold all permits, and the third member is down.
#[test]
fn waiter_gives_up_permits_that_differ_without_delay() {
    let mut fixture = Fixture::new(3);
    fixture.disconnect(2);
    start(&mut fixture, true);
    fixture.reply(0, granted_slot(0));
    fixture.reply(1, granted_slot(1));
    assert_eq!(fixture.kinds(0), ["requeue"]);
}

#[test]
fn wait_continues_despite_one_differing_permit_count() {
    let mut fixture = Fixture::new(3);
    let (_, id) = start(&mut fixture, true);
    fixture.reply(0, granted_slot(0));
    fixture.reply(1, granted_slot(1));
    let error = Error::new(ErrorKind::PermitsDiffer, "2 permits, not 3");
    fixture.reply(2, Reply::Failed(error));
    assert!(fixture.outcome(id).is_none());
    assert_eq!(fixture.kinds(0), ["requeue"]);
}

/// Two waiters for different numbers of permits may each have a part of the members, while the others are silent.
#[test]
fn waiters_for_other_permits_give_way() {
    let mut fixture = Fixture::new(5);
    let (_, id) = start(&mut fixture, true);
    fixture.reply_all(&[3, 4], &busy(1));
    fixture.reply_all(&[0, 1], &granted_slot(0));
    let error = Error::new(ErrorKind::PermitsDiffer, "2 permits, not 3");
    fixture.reply(2, Reply::Failed(error));
    fixture.pass(20);
    assert!(fixture.outcome(id).is_none());
    assert_eq!(fixture.kinds(2), ["acquire"]);
    for member in [0, 1, 3, 4] {
        assert_eq!(fixture.kinds(member), ["release", "acquire"]);
    }
}

#[test]
fn wait_ends_where_all_connected_members_differ() {
    let mut fixture = Fixture::new(5);
    fixture.disconnect(3);
    fixture.disconnect(4);
    let (_, id) = start(&mut fixture, true);
    let error = Error::new(ErrorKind::PermitsDiffer, "2 permits, not 3");
    fixture.reply_all(&[0, 1, 2], &Reply::Failed(error));
    let error = fixture.failure(id);
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
}
