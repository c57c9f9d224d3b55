mod heirs;
mod line;

use futures_util::FutureExt;

use super::*;
use crate::BoxFuture;
use crate::ambient::SystemEntropy;
use crate::attempt::{Attempt, Grant};
use crate::clock::Clock;
use crate::fence::Fence;
use crate::holder::ClientInfo;
use crate::inheritance::Inheritance;
use crate::member::RESERVATION;

fn owner() -> Owner {
    Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy)
}

fn lock() -> Key {
    Key::new("lock").unwrap()
}

/// A claim that is part of the wait of `waiter`.
fn claim(waiter: Owner) -> Arc<Claim> {
    let ambient = Ambient::default();
    let info = Arc::new(ClientInfo::of_this_process(&ambient, None));
    let (wall, ttl) = (ambient.clock.wall(), Duration::from_secs(30));
    let claim = Claim::new(lock(), owner(), ttl, wall, info);
    Arc::new(claim.with_wait(Wait::InTurn(waiter)))
}

/// The wait of `waiter`, which has just begun.
fn begun(waits: &Waits, waiter: Owner) -> Arc<Vigil> {
    waits.enter(waiter, &lock());
    waits.of(waiter).expect("it waits")
}

#[test]
fn a_wait_is_forgotten_once_it_was_left_and_what_it_got_was_given_back() {
    let (waits, _errands) = Waits::new(1, None, Ambient::default());
    let waiter = owner();
    begun(&waits, waiter);
    assert!(waits.leave(waiter).is_some(), "it held nothing");
    assert!(waits.of(waiter).is_none());

    let (vigil, claim) = (begun(&waits, waiter), claim(waiter));
    vigil.hold(&claim, Fence::new(1).unwrap());
    assert!(waits.leave(waiter).is_none(), "it holds the lock");
    assert!(waits.of(waiter).is_some());
    assert!(waits.give_back(waiter, &claim).is_some());
    assert!(waits.of(waiter).is_none());
}

#[test]
fn a_grant_that_is_of_no_use_is_given_back_and_the_wait_goes_on() {
    let (waits, _errands) = Waits::new(1, None, Ambient::default());
    let waiter = owner();
    let (vigil, claim) = (begun(&waits, waiter), claim(waiter));
    vigil.hold(&claim, Fence::new(1).unwrap());
    assert!(waits.give_back(waiter, &claim).is_none());
    assert!(waits.of(waiter).is_some());
    assert!(matches!(vigil.departure(0), Departure::Requeue(_)));
    assert!(vigil.is_queued(0), "it has to be taken out again");
}

#[test]
fn who_has_left_is_queued_no_more_and_its_turn_is_for_somebody_else() {
    let (waits, _errands) = Waits::new(1, None, Ambient::default());
    let waiter = owner();
    let vigil = begun(&waits, waiter);
    assert!(vigil.leave());
    assert_eq!(vigil.departure(0), Departure::HandOver);
    assert!(!vigil.is_queued(0));
    let turn = Hint {
        key: lock(),
        waiter,
        word: Word::YourTurn,
        slot: None,
    };
    assert!(matches!(
        vigil.hear(0, &turn, &Ambient::default()),
        Concern::Over
    ));
}

#[test]
fn a_turn_that_is_told_while_the_grant_is_decided_is_taken_too() {
    let (waits, errands) = Waits::new(3, None, Ambient::default());
    let (waiter, ambient) = (owner(), Ambient::default());
    let (vigil, claim) = (begun(&waits, waiter), claim(waiter));
    let turn = Hint {
        key: lock(),
        waiter,
        word: Word::YourTurn,
        slot: None,
    };
    vigil.hear(1, &turn, &ambient);
    vigil.begin(&claim, &ambient);
    vigil.hear(2, &turn, &ambient);
    let granted = || Ok(Attempt::Granted(Grant::new(Fence::new(1).unwrap())));
    for (member, answer) in [Ok(Attempt::Busy(Busy::default())), granted(), granted()]
        .into_iter()
        .enumerate()
    {
        vigil.asking(member, 0);
        vigil.answered(member, &answer, &ambient);
    }
    vigil.hear(0, &turn, &ambient);
    vigil.hold(&claim, Fence::new(1).unwrap());
    waits.granted(&vigil);
    let mut errands = errands.try_lock().unwrap();
    let Ok(Errand::TakeToo(0, held, _)) = errands.try_recv() else {
        panic!("the first keeps it until the reservation lapses");
    };
    assert_eq!(held.claim.owner, claim.owner);
    assert!(errands.try_recv().is_err(), "the others granted it");
}

#[test]
fn what_is_taken_late_is_what_is_held_now() {
    let (waits, _errands) = Waits::new(3, None, Ambient::default());
    let waiter = owner();
    let (vigil, held, before) = (begun(&waits, waiter), claim(waiter), claim(waiter));
    vigil.hold(&held, Fence::new(1).unwrap());
    let shared = |claim: &Claim| Arc::new(claim.clone().with_mode(Mode::Shared));
    let mode = |owner| vigil.while_held(owner, |claim| claim.mode);
    assert_eq!(mode(before.owner), None);
    waits.held_as(&shared(&before));
    assert_eq!(mode(held.owner), Some(Mode::Exclusive));
    waits.held_as(&shared(&held));
    assert_eq!(mode(held.owner), Some(Mode::Shared));
}

#[test]
fn those_who_were_told_of_free_permits_together_pick_different_ones() {
    let permits = Permits::new(2).unwrap();
    for _ in 0..20 {
        let (waits, _errands) = Waits::new(3, None, Ambient::default());
        let busy = Busy {
            free: permits.slots().collect(),
            ..Busy::default()
        };
        waits.note_busy(&lock(), &busy);
        let (first, second) = (claim(owner()), claim(owner()));
        let picked = waits.pick(&first, permits);
        assert_ne!(picked, waits.pick(&second, permits));
        assert_eq!(picked, waits.pick(&first, permits), "asked again");
    }
}

/// A clock that stands.
#[derive(Debug)]
struct Standing(WallTime);

impl Clock for Standing {
    fn now(&self) -> BootInstant {
        BootInstant::from_nanos(1_000_000_000)
    }

    fn wall(&self) -> WallTime {
        self.0
    }

    fn sleep_until(&self, _deadline: BootInstant) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn stood_still(&self, _span: Duration) {}
}

/// How a lock is given back at 1,002 s, by one whose attempt began `ago`.
fn given_back(gap: Option<Duration>, ago: Duration, wait: Wait, silent: bool) -> Departure {
    let wall = WallTime::from_micros(1_002_000_000);
    let ambient = Ambient {
        clock: Arc::new(Standing(wall)),
        ..Ambient::default()
    };
    let (waits, _errands) = Waits::new(3, gap, ambient);
    let busy = Busy {
        silent,
        ..Busy::default()
    };
    waits.note_busy(&lock(), &busy);
    // Whoever came after such a client tells the others.
    waits.note_busy(&lock(), &Busy::default());
    let mut claim = claim(owner()).as_ref().clone().with_wait(wait);
    claim.proposal = WallTime::from_micros(wall.as_micros() - ago.as_micros() as u64);
    waits.departure(&claim)
}

#[test]
fn a_lock_that_is_held_in_turn_is_left_free_now_and_then_for_those_who_poll() {
    let gap = Duration::from_millis(150);
    let (turn, left_free) = (Wait::InTurn(owner()), Departure::LeaveFree(gap));
    let back = |ago, silent| {
        let ago = Duration::from_millis(ago);
        given_back(Some(gap), ago, turn, silent)
    };
    // A period ended at 1,000 s; where such clients were seen, at 1,002 s. Half a gap of slack.
    assert_eq!(back(1_900, false), Departure::HandOver);
    assert_eq!(back(1_950, false), left_free);
    assert_eq!(back(1_000, true), left_free);
    assert_eq!(back(900, false), Departure::HandOver);
}

#[test]
fn a_lock_is_handed_over_where_no_gap_is_wanted_or_it_was_not_held_in_turn() {
    let (gap, ago) = (Duration::from_millis(150), Duration::from_secs(10));
    for wait in [Wait::None, Wait::Barging] {
        assert_eq!(given_back(Some(gap), ago, wait, true), Departure::HandOver);
    }
    let turn = Wait::InTurn(owner());
    assert_eq!(given_back(None, ago, turn, true), Departure::HandOver);
}
