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

/// The lock as clients of one quorum wait for it, the first of them with nobody before it.
struct Line {
    waits: Arc<Waits>,
    clients: [ClientId; 2],
}

impl Line {
    fn new() -> Self {
        let ambient = Ambient {
            clock: Arc::new(Standing(WallTime::from_micros(1_000_000))),
            ..Ambient::default()
        };
        let (waits, _errands) = Waits::new(1, None, ambient);
        // Tickets by a member's clock: each is later than the one before.
        let sent = waits.ambient.clock.now();
        waits.read_clock(0, waits.ambient.clock.wall(), sent);
        let clients = [0; 2].map(|_| ClientId::random(&SystemEntropy));
        Self { waits, clients }
    }

    /// Begins to wait, and is told its place.
    fn wait(&self, client: usize, place: u64) -> Owner {
        let waiter = self.ask(client, place);
        self.waits.refused(&self.waits.of(waiter).unwrap());
        waiter
    }

    /// Begins to wait, and has heard of its place before the attempt is decided.
    fn ask(&self, client: usize, place: u64) -> Owner {
        let waiter = Owner::random(self.clients[client], &SystemEntropy);
        begun(&self.waits, waiter).begin(&claim(waiter), &self.waits.ambient);
        self.answer(waiter, Some(owner()), place);
        waiter
    }

    /// The member refuses, as somebody holds the lock, or since it is kept for one that waits.
    fn answer(&self, waiter: Owner, holder: Option<Owner>, place: u64) {
        let vigil = self.waits.of(waiter).unwrap();
        let heirs = self.waits.heirs(&lock(), waiter.client());
        vigil.asking(0, heirs);
        let busy = Busy {
            place: Some(place),
            remaining: Some(RESERVATION),
            ..Busy::by(holder)
        };
        let answer = Ok(Attempt::Busy(busy));
        vigil.answered(0, &answer, &self.waits.ambient);
    }

    /// A lease of the client that stands, and has fences for its heirs.
    fn lease(&self, client: usize) -> Inheritance {
        let mut claim = claim(owner()).as_ref().clone();
        claim.owner = Owner::random(self.clients[client], &SystemEntropy);
        if let Some(reserve) = self.waits.begin_reserve(&claim) {
            let [fence, greatest] = [1, 9].map(|number| Fence::new(number).unwrap());
            reserve.asked(fence, greatest, true);
        }
        let now = self.waits.ambient.clock.now();
        Inheritance::new(Arc::new(claim), now + Duration::from_secs(25), now)
    }

    /// Leaves the lease to somebody who waits, and says to whom.
    fn left_to(&self, lease: &Inheritance, waiters: &[Owner]) -> Option<Owner> {
        let mut waits: Vec<_> = waiters
            .iter()
            .map(|it| Box::pin(self.waits.due(*it)))
            .collect();
        for wait in &mut waits {
            assert!(wait.now_or_never().is_none(), "it has nothing to ask for");
        }
        let is_left = self.waits.bequeath(lease);
        let due = waits.iter_mut().map(|wait| wait.now_or_never().is_some());
        let heir = due
            .collect::<Vec<_>>()
            .into_iter()
            .position(|is_due| is_due);
        assert_eq!(heir.is_some(), is_left);
        heir.map(|heir| waiters[heir])
    }

    /// Takes what was left to it.
    fn inherit(&self, heir: Owner) -> Option<Fence> {
        let (_, grant) = self.waits.inherit(&claim(heir))?;
        Some(grant.fence)
    }

    fn freed_by(&self, client: usize, mode: Mode) {
        let mut claim = claim(owner()).as_ref().clone().with_mode(mode);
        claim.owner = Owner::random(self.clients[client], &SystemEntropy);
        self.waits.call_next(&claim, Departure::HandOver);
    }

    fn is_called(&self, waiter: Owner) -> bool {
        self.waits.due(waiter).now_or_never().is_some()
    }
}

#[test]
fn a_waiter_is_called_by_its_own_client_alone() {
    let line = Line::new();
    let (first, second) = (line.wait(0, 1), line.wait(1, 1));
    line.freed_by(1, Mode::Exclusive);
    assert!(!line.is_called(first));
    assert!(line.is_called(second));
}

/// Others may hold it still.
#[test]
fn nobody_is_called_to_a_lock_that_was_shared() {
    let line = Line::new();
    let first = line.wait(0, 1);
    line.freed_by(0, Mode::Shared);
    assert!(!line.is_called(first));
    line.freed_by(0, Mode::Exclusive);
    assert!(line.is_called(first));
}

/// As where a lease was lost, and its guard is not given back yet.
#[test]
fn who_was_granted_the_lock_is_passed_over() {
    let line = Line::new();
    let (first, second) = (line.wait(0, 1), line.wait(0, 2));
    let vigil = line.waits.of(first).unwrap();
    vigil.hold(&claim(first), Fence::new(1).unwrap());
    line.waits.granted(&vigil);
    line.freed_by(0, Mode::Exclusive);
    assert!(!line.is_called(first));
    assert!(line.is_called(second), "the one before it had its turn");
}

#[test]
fn a_place_that_is_told_anew_counts_from_then_on() {
    let line = Line::new();
    let (first, second) = (line.wait(0, 1), line.wait(0, 3));
    let vigil = line.waits.of(first).unwrap();
    line.waits.granted(&vigil);
    line.waits.leave(first);
    line.waits.refused(&line.waits.of(second).unwrap());
    line.freed_by(0, Mode::Exclusive);
    assert!(
        !line.is_called(second),
        "it was told of two before it since"
    );
}

#[test]
fn who_came_after_a_grant_is_not_moved_up_by_it() {
    let line = Line::new();
    let first = line.wait(0, 1);
    let vigil = line.waits.of(first).unwrap();
    vigil.hold(&claim(first), Fence::new(1).unwrap());
    line.waits.granted(&vigil);
    let second = line.ask(0, 2);
    line.freed_by(0, Mode::Exclusive);
    assert!(!line.is_called(second), "another client's is before it");
}

#[test]
fn whoever_the_lock_was_kept_for_comes_before_those_who_were_told_a_place() {
    let line = Line::new();
    let (first, second) = (line.wait(0, 1), line.ask(0, 2));
    // Kept for the first, which no queue has any more; another client's waiter is before the second.
    line.answer(second, None, 2);
    line.waits.refused(&line.waits.of(second).unwrap());
    let vigil = line.waits.of(first).unwrap();
    vigil.hold(&claim(first), Fence::new(1).unwrap());
    line.waits.granted(&vigil);
    assert_eq!(line.left_to(&line.lease(0), &[second]), None);
    line.freed_by(0, Mode::Exclusive);
    assert!(!line.is_called(second));
}

#[test]
fn a_lease_goes_over_to_the_first_of_its_client_if_nobody_is_before_that_one() {
    let line = Line::new();
    let (other, behind) = (line.wait(1, 1), line.wait(0, 2));
    assert_eq!(line.left_to(&line.lease(0), &[behind]), None);
    assert_eq!(line.left_to(&line.lease(1), &[other]), Some(other));
    assert!(line.inherit(behind).is_none(), "it was left to another");
    assert_eq!(line.inherit(other), Fence::new(2));
    assert!(line.inherit(other).is_none(), "once");
}

#[test]
fn heirs_come_one_after_the_other_each_with_the_next_fence() {
    let line = Line::new();
    let waiters = [line.wait(0, 1), line.wait(0, 2), line.wait(0, 3)];
    let lease = line.lease(0);
    for (before, heir) in waiters.iter().enumerate() {
        let waiting = &waiters[before..];
        assert_eq!(line.left_to(&lease, waiting), Some(*heir));
        assert_eq!(line.inherit(*heir), Fence::new(before as u64 + 2));
    }
    let last = line.wait(0, 1);
    line.waits.end_reserve(lease.claim.owner);
    assert_eq!(line.left_to(&lease, &[last]), None, "it was given back");
}

/// As long as it is not taken out, an heir stands in a member's queue, before those who come.
#[test]
fn a_place_behind_an_heir_counts_down_only_where_that_one_stood_in_the_queue() {
    let line = Line::new();
    let heir = line.wait(0, 1);
    // Asks while the heir is queued: another client's is between them.
    let early = line.ask(0, 3);
    let lease = line.lease(0);
    assert_eq!(line.left_to(&lease, &[heir]), Some(heir));
    line.inherit(heir);
    assert_eq!(line.left_to(&lease, &[early]), None);
    line.waits.leave(early);
    // And this one when it is gone.
    let late = line.wait(0, 2);
    assert_eq!(line.left_to(&lease, &[late]), None);
    line.waits.leave(late);
    let next = line.wait(0, 1);
    assert_eq!(line.left_to(&lease, &[next]), Some(next));
}

#[test]
fn what_is_left_to_one_that_stops_waiting_is_not_lost() {
    let line = Line::new();
    let (first, second) = (line.wait(0, 1), line.wait(0, 2));
    let lease = line.lease(0);
    assert_eq!(line.left_to(&lease, &[first, second]), Some(first));
    let owner = lease.claim.owner;
    let left = line.waits.renounce(first).expect("it was left to it");
    assert_eq!(left.claim.owner, owner);
    assert!(line.waits.renounce(first).is_none());
    line.waits.leave(first);
    assert!(line.inherit(first).is_none());
}

#[test]
fn who_asks_at_the_moment_or_wants_another_lease_inherits_none() {
    let line = Line::new();
    let waiter = line.wait(0, 1);
    let lease = line.lease(0);
    assert!(
        !line.waits.bequeath(&lease),
        "an attempt of it may be under way"
    );
    let wants = |change: fn(Claim) -> Claim| {
        let wanted = change(claim(waiter).as_ref().clone());
        let vigil = line.waits.of(waiter).unwrap();
        vigil.begin(&wanted, &line.waits.ambient);
        line.answer(waiter, Some(owner()), 1);
        line.left_to(&lease, &[waiter])
    };
    assert_eq!(wants(|claim| claim.with_mode(Mode::Shared)), None);
    assert_eq!(wants(Claim::without_inheriting), None);
    let shorter = |mut claim: Claim| {
        claim.ttl -= Duration::from_millis(1);
        claim
    };
    assert_eq!(wants(shorter), None, "others would be kept out for longer");
    let longer = |mut claim: Claim| {
        claim.ttl *= 2;
        claim
    };
    assert_eq!(wants(longer), None, "not half of it is left");
    assert_eq!(wants(|claim| claim), Some(waiter));
}
