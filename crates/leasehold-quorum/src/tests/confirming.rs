//! Fences that differ between members.

use super::*;

/// Otherwise fences come out of order.
#[test]
fn greatest_fence_is_confirmed_at_the_others() {
    let mut fixture = Fixture::new(3);
    let (_, id) = fixture.attempt();
    fixture.reply(0, granted(7));
    fixture.reply(1, granted(9));
    assert!(fixture.outcome(id).is_none());
    let [Request::ConfirmFence { fence: asked, .. }] = fixture.sent(0)[..] else {
        panic!("{:?}", fixture.sent(0));
    };
    assert_eq!(*asked, fence(9));
    fixture.reply(0, Reply::Confirmed(FenceConfirmation::Confirmed));
    assert_eq!(fixture.acquired(id).expect("a lease").fence, fence(9));
}

#[test]
fn lost_lease_is_not_confirmed() {
    let mut fixture = Fixture::new(3);
    let (_, id) = fixture.attempt();
    fixture.reply(2, refused());
    fixture.reply(0, granted(7));
    fixture.reply(1, granted(9));
    fixture.reply(0, Reply::Confirmed(FenceConfirmation::NotHeld));
    assert!(!matches!(
        fixture.outcome(id),
        Some(Outcome::Acquired(_)) | None
    ));
    assert_eq!(fixture.kinds(1), ["release"]);
}

#[test]
fn readers_try_another_fence_where_one_is_taken() {
    let mut fixture = Fixture::new(3);
    let lock_request = Arc::new(fixture.lock_request(false).with_mode(Mode::Shared));
    let id = fixture.acquire(&lock_request);
    fixture.reply(2, refused());
    fixture.reply(0, granted(8));
    fixture.reply(1, granted(9));
    fixture.reply(0, Reply::Confirmed(FenceConfirmation::Conflict(fence(11))));
    let [Request::ConfirmFence { fence: next, .. }] = fixture.sent(0)[..] else {
        panic!("{:?}", fixture.sent(0));
    };
    let next = *next;
    assert!(next > fence(11));
    fixture.reply(0, Reply::Confirmed(FenceConfirmation::Confirmed));
    fixture.reply(1, Reply::Confirmed(FenceConfirmation::Confirmed));
    assert_eq!(fixture.acquired(id).expect("a lease").fence, next);
}

#[test]
fn confirmation_without_reply_fails_the_attempt() {
    let mut fixture = Fixture::new(3);
    let (_, id) = fixture.attempt();
    fixture.reply(2, refused());
    fixture.reply(0, granted(7));
    fixture.reply(1, granted(9));
    fixture.pass(501);
    assert!(fixture.outcome(id).is_some());
    assert_eq!(fixture.kinds(1), ["release"]);
}

/// A confirmation is for the round that asked for it.
#[test]
fn confirmation_of_an_earlier_round_is_void() {
    let mut fixture = Fixture::new(3);
    let (lock_request, id) = fixture.wait();
    fixture.notify(0, &lock_request);
    fixture.notify(1, &lock_request);
    fixture.reply(0, granted(7));
    fixture.reply(1, granted(9));
    assert_eq!(fixture.kinds(0), ["confirm"]);
    fixture.pass(60);
    assert_eq!(fixture.kinds(0), ["confirm", "requeue"]);
    fixture.reply(1, released(true));
    fixture.notify(0, &lock_request);
    fixture.notify(1, &lock_request);
    fixture.reply(0, Reply::Confirmed(FenceConfirmation::Confirmed));
    fixture.reply(0, released(true));
    fixture.reply(0, granted(8));
    fixture.reply(1, granted(9));
    assert!(fixture.outcome(id).is_none());
    assert_eq!(fixture.kinds(0), ["confirm"]);
}

#[test]
fn disconnected_member_is_not_asked_to_confirm() {
    let mut fixture = Fixture::new(3);
    let (_, id) = fixture.attempt();
    fixture.reply(0, granted(7));
    fixture.disconnect(0);
    fixture.reply(1, granted(8));
    assert!(fixture.kinds(0).is_empty());
    fixture.reply(2, granted(8));
    assert_eq!(fixture.acquired(id).expect("a lease").fence, fence(8));
}
