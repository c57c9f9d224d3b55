use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::ambient::Ambient;
use crate::attempt::{Attempt, Busy};
use crate::claim::{Claim, Mode};
use crate::clock::BootInstant;
use crate::error::Error;
use crate::fence::Fence;
use crate::inheritance::{Inheritance, Wanted};
use crate::key::Key;
use crate::owner::Owner;
use crate::queue::{Departure, Hint, Ticket, Turn, Word};
use crate::quorum::slots::Sayings;
use crate::quorum::waiting::board::Board;
use crate::quorum::waiting::stage::{Held, Stage};
use crate::quorum::waiting::vigils::Passed;

/// One wait: its place in the queue, and what is known of it. It goes on beyond its grant, since
/// members whose previous holder was slow to leave hand over after a majority did.
#[derive(Debug)]
pub(crate) struct Vigil {
    pub(crate) key: Key,
    pub(crate) ticket: Ticket,
    board: watch::Sender<Board>,
    stage: Mutex<Stage>,
}

/// To whom a hint is of use.
#[derive(Debug)]
pub(super) enum Concern {
    /// It waits, and was told.
    Waits,
    /// It holds the lock already: it may take it there too.
    Holds(Held),
    /// Its turn is not needed any more.
    Over,
}

impl Vigil {
    pub(super) fn new(key: Key, ticket: Ticket, members: usize) -> Self {
        let board = Board::new(members);
        Self {
            key,
            ticket,
            board: watch::Sender::new(board),
            stage: Mutex::default(),
        }
    }

    pub(crate) fn turn(&self) -> Turn {
        Turn::Queued(self.ticket)
    }

    /// An attempt begins.
    pub(crate) fn begin(&self, claim: &Claim, ambient: &Ambient) {
        let may_inherit = claim.inherits && claim.mode == Mode::Exclusive;
        self.stage().wanted = may_inherit.then(|| Wanted::by(claim));
        let (now, random) = (ambient.clock.now(), ambient.entropy.next_u64());
        self.board.send_modify(|board| board.begin(now, random));
    }

    /// A member is asked, after so many of its client got the lock from one another.
    pub(crate) fn asking(&self, member: usize, heirs: u64) {
        self.board.send_modify(|board| board.asking(member, heirs));
    }

    pub(crate) fn answered(
        &self,
        member: usize,
        answer: &Result<Attempt, Error>,
        ambient: &Ambient,
    ) {
        let now = ambient.clock.now();
        self.board.send_modify(|board| match answer {
            Ok(Attempt::Granted(_)) => board.granted(member),
            Ok(Attempt::Busy(busy)) => board.busy(member, busy, now),
            // It may stand in the queue, and it may not.
            Err(_) => {}
        });
    }

    pub(super) fn deaf(&self, member: usize, ambient: &Ambient) {
        let now = ambient.clock.now();
        self.board.send_modify(|board| board.deaf(member, now));
    }

    /// Takes in a word from a member, and says to whom it is of use.
    pub(super) fn hear(&self, member: usize, hint: &Hint, ambient: &Ambient) -> Concern {
        let now = ambient.clock.now();
        let stage = self.stage();
        match &stage.held {
            Some(held) if held.is_another(hint.slot) => Concern::Over,
            Some(held) => Concern::Holds(held.clone()),
            None if stage.left => Concern::Over,
            None => {
                self.board
                    .send_modify(|board| board.hint(member, hint.word, hint.slot, now));
                Concern::Waits
            }
        }
    }

    /// The attempt was granted.
    pub(crate) fn hold(&self, claim: &Arc<Claim>, fence: Fence) {
        self.stage().held = Some(Held {
            claim: Arc::clone(claim),
            fence,
        });
    }

    /// What was granted is held as `claim` from now on, in whose mode it is to be taken elsewhere.
    pub(super) fn held_as(&self, claim: &Arc<Claim>) {
        if let Some(held) = &mut self.stage().held
            && held.claim.owner == claim.owner
        {
            held.claim = Arc::clone(claim);
        }
    }

    /// Runs `work` if this attempt is held, and before it is given back, on the claim as it is held.
    pub(crate) fn while_held<T>(
        &self,
        owner: Owner,
        work: impl FnOnce(&Arc<Claim>) -> T,
    ) -> Option<T> {
        let stage = self.stage();
        let held = stage.held.as_ref()?;
        (held.claim.owner == owner).then(|| work(&held.claim))
    }

    /// The attempt that was granted is given back. `true` if with that the wait is over.
    pub(super) fn give_back(&self, claim: &Claim) -> bool {
        let mut stage = self.stage();
        let is_held = |held: &Held| held.claim.owner == claim.owner;
        if stage.held.as_ref().is_some_and(is_held) {
            stage.held = None;
        }
        stage.left && stage.held.is_none()
    }

    /// Nobody waits any more. `true` if nothing is held either.
    pub(super) fn leave(&self) -> bool {
        let mut stage = self.stage();
        stage.left = true;
        stage.held.is_none()
    }

    /// What becomes of the lock where an attempt failed because others hold it elsewhere.
    pub(crate) fn departure(&self, member: usize) -> Departure {
        if self.stage().left {
            return Departure::HandOver;
        }
        self.board.send_modify(|board| board.requeued(member));
        Departure::Requeue(self.ticket)
    }

    /// When it was first told, or called, that it is its turn, if that led to the last attempt.
    pub(crate) fn told(&self) -> Option<BootInstant> {
        self.board.borrow().led_by()
    }

    /// It was refused, after so many of its client that wait for the lock were granted it.
    pub(super) fn note_grants(&self, grants: u64) {
        self.stage().grants_before = grants;
    }

    /// Whether it holds nothing, and was left nothing.
    pub(super) fn waits(&self) -> bool {
        let stage = self.stage();
        stage.held.is_none() && stage.left_to_it.is_none() && !stage.left
    }

    /// Has it ask at once, if nobody is before it.
    pub(super) fn call(&self, passed: Passed, now: BootInstant) {
        let stage = self.stage();
        self.board.send_if_modified(|board| {
            let is_called = stage.is_next(board, passed);
            if is_called {
                board.call(now);
            }
            is_called
        });
    }

    /// Whether it could be left the lease now: nobody is before it by what it was told lately, and it
    /// has nothing under way.
    pub(super) fn can_inherit(
        &self,
        passed: Passed,
        lease: &Inheritance,
        now: BootInstant,
    ) -> bool {
        let stage = self.stage();
        let board = self.board.borrow();
        stage.is_idle
            && stage.wanted.is_some_and(|it| lease.suits(it, now))
            && board.asked_since(now) < PLACE_HOLDS
            && stage.is_next(&board, passed)
    }

    /// Has it ask at once, for what is left to it. `false` if it has stopped waiting.
    pub(super) fn leave_to_it(&self, lease: &Inheritance, fence: Fence, now: BootInstant) -> bool {
        let mut stage = self.stage();
        if stage.left {
            return false;
        }
        stage.left_to_it = Some((lease.clone(), fence));
        self.board.send_modify(|board| board.call(now));
        true
    }

    /// Takes what was left to it, for `heir`, if that is still of use: a machine that stood still finds it
    /// used up.
    pub(super) fn inherit(&self, heir: &Claim, ambient: &Ambient) -> Option<(Inheritance, Fence)> {
        let now = ambient.clock.now();
        let inherited = {
            let mut stage = self.stage();
            let suits = |lease: &Inheritance| lease.suits(Wanted::by(heir), now);
            let (lease, fence) = stage.left_to_it.take_if(|(lease, _)| suits(lease))?;
            let lease = lease.for_heir(heir, now);
            stage.held = Some(Held {
                claim: Arc::clone(&lease.claim),
                fence,
            });
            (lease, fence)
        };
        self.begin(heir, ambient);
        Some(inherited)
    }

    /// What was left to it, and will not be taken.
    pub(crate) fn renounce(&self) -> Option<Inheritance> {
        self.stage().left_to_it.take().map(|(lease, _)| lease)
    }

    /// What was heard while the last attempt was under way, of members that had refused it by then: they
    /// keep the lock for this wait, and do not say so again.
    pub(super) fn turns(&self) -> Vec<(usize, Hint)> {
        let hint = |slot| Hint {
            key: self.key.clone(),
            waiter: self.ticket.waiter,
            word: Word::YourTurn,
            slot,
        };
        let board = self.board.borrow();
        let turns = board.turns().map(|(member, slot)| (member, hint(slot)));
        turns.collect()
    }

    /// Whether it may stand in a member's queue.
    pub(crate) fn is_queued(&self, member: usize) -> bool {
        self.board.borrow().is_queued(member)
    }

    /// It is taken out of a member's queue.
    pub(crate) fn leaves_queue(&self, member: usize) {
        self.board.send_modify(|board| board.leaves(member));
    }

    /// Resolves when another attempt is due.
    pub(super) async fn due(&self, ambient: &Ambient) {
        let _idle = Idle::begin(self);
        let mut news = self.board.subscribe();
        loop {
            let due = news.borrow_and_update().due();
            let Some(due) = due.filter(|due| ambient.clock.now() < *due) else {
                return;
            };
            tokio::select! {
                biased;
                // The sender is ours: it lives as long as this.
                _ = news.changed() => {}
                () = ambient.clock.sleep_until(due) => return,
            }
        }
    }

    /// What is known of the lock's permits, before an attempt begins.
    pub(super) fn said(&self) -> Sayings {
        self.board.borrow().said()
    }

    /// A refusal as its waiter sees it: with the place that a majority of members gives.
    pub(crate) fn refusal(&self, mut busy: Busy) -> Busy {
        busy.place = self.board.borrow().place();
        busy
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        // Every change under the mutex is a single step; a panic elsewhere leaves it whole.
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While a wait has nothing under way.
struct Idle<'a>(&'a Vigil);

impl<'a> Idle<'a> {
    fn begin(vigil: &'a Vigil) -> Self {
        vigil.stage().is_idle = true;
        Self(vigil)
    }
}

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        self.0.stage().is_idle = false;
    }
}

/// So long a wait goes by the place that it was told: somebody with an older ticket may have come back
/// since.
const PLACE_HOLDS: Duration = Duration::from_secs(1);
