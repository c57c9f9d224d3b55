use super::*;

/// The lock as clients of one quorum wait for it, the first of them with nobody before it.
pub(super) struct Line {
    pub(super) waits: Arc<Waits>,
    clients: [ClientId; 2],
}

impl Line {
    pub(super) fn new() -> Self {
        Self::of(1)
    }

    /// On so many members.
    pub(super) fn of(members: usize) -> Self {
        let ambient = Ambient {
            clock: Arc::new(Standing(WallTime::from_micros(1_000_000))),
            ..Ambient::default()
        };
        let (waits, _errands) = Waits::new(members, None, ambient);
        // Tickets by a member's clock: each is later than the one before.
        let sent = waits.ambient.clock.now();
        waits.read_clock(0, waits.ambient.clock.wall(), sent);
        let clients = [0; 2].map(|_| ClientId::random(&SystemEntropy));
        Self { waits, clients }
    }

    /// Begins to wait, and is told its place.
    pub(super) fn wait(&self, client: usize, place: u64) -> Owner {
        let waiter = self.ask(client, place);
        self.waits.refused(&self.waits.of(waiter).unwrap());
        waiter
    }

    /// Begins to wait, and has heard of its place before the attempt is decided.
    pub(super) fn ask(&self, client: usize, place: u64) -> Owner {
        let waiter = Owner::random(self.clients[client], &SystemEntropy);
        begun(&self.waits, waiter).begin(&claim(waiter), &self.waits.ambient);
        self.answer(waiter, Some(owner()), place);
        waiter
    }

    /// The member refuses, as somebody holds the lock, or since it is kept for one that waits.
    pub(super) fn answer(&self, waiter: Owner, holder: Option<Owner>, place: u64) {
        self.answer_of(0, waiter, holder, place);
    }

    pub(super) fn answer_of(
        &self,
        member: usize,
        waiter: Owner,
        holder: Option<Owner>,
        place: u64,
    ) {
        let vigil = self.waits.of(waiter).unwrap();
        let heirs = self.waits.heirs(&lock(), waiter.client());
        vigil.asking(member, heirs);
        let busy = Busy {
            place: Some(place),
            remaining: Some(RESERVATION),
            ..Busy::by(holder)
        };
        let answer = Ok(Attempt::Busy(busy));
        vigil.answered(member, &answer, &self.waits.ambient);
    }

    /// A lease of the client that stands, and has fences for its heirs.
    pub(super) fn lease(&self, client: usize) -> Inheritance {
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
    pub(super) fn left_to(&self, lease: &Inheritance, waiters: &[Owner]) -> Option<Owner> {
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
    pub(super) fn inherit(&self, heir: Owner) -> Option<Fence> {
        self.take(heir, &claim(heir))
    }

    pub(super) fn take(&self, heir: Owner, claim: &Claim) -> Option<Fence> {
        let vigil = self.waits.of(heir)?;
        Some(self.waits.inherit(&vigil, claim)?.fence)
    }

    pub(super) fn freed_by(&self, client: usize, mode: Mode) {
        let mut claim = claim(owner()).as_ref().clone().with_mode(mode);
        claim.owner = Owner::random(self.clients[client], &SystemEntropy);
        self.waits.call_next(&claim, Departure::HandOver);
    }

    pub(super) fn is_called(&self, waiter: Owner) -> bool {
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
