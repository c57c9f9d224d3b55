//! All that may happen next in a state.
//!
//! A message that was sent may arrive at any later step or never, so loss and delay need no steps of their own. Neither
//! does a client that pauses: nothing makes it act.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use stateright::{Model, Property};

use crate::rules::{Bounds, Rule};
use crate::search::PROMISE;
use crate::state::{
    Acquire, Attempt, LEASE, MAJORITY, MEMBERS, Member, Phase, Promise, State, Talk,
};
use crate::step::{Step, line};

/// The protocol, and how much of it a search tries.
#[derive(Debug)]
pub struct Quorum {
    left_out: &'static [Rule],
    pub(crate) bounds: Bounds,
    /// The promise that the search is about; if none, all of them.
    promise: Option<Promise>,
    /// Whether the search broke it.
    is_broken: AtomicBool,
}

impl Model for Quorum {
    type State = State;
    type Action = Step;

    /// Some counters are ahead of the others.
    fn init_states(&self) -> Vec<State> {
        let state = |counters: [u8; MEMBERS]| State {
            members: counters.map(|ahead| Member {
                counter: self.tick_length() + ahead,
                ..Member::default()
            }),
            wall: 1,
            mishaps: self.bounds.mishaps,
            ..State::default()
        };
        vec![state([0, 0, 1]), state([0, 1, 1])]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let used = &state.attempts[..self.bounds.attempts];
        let is_decided = |it: &Attempt| !it.is_pending() && it.phase != Phase::Unsent;
        let is_over = used.iter().all(is_decided) && self.has(Rule::LostIsFinal);
        if is_over || state.broken == Some(Promise::Exclusion) {
            return;
        }
        steps.push(Step::Tick);
        self.starts(state, steps);
        for a in 0..self.bounds.attempts {
            self.client_steps(state, a, steps);
            self.request_steps(state, a, steps);
        }
        self.member_steps(state, steps);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = *state;
        next.broken = None;
        match step {
            Step::Start(a, proposal) => next.start(a, proposal),
            Step::Choose(a, fence) => self.choose(&mut next, a, fence),
            Step::Win(a) => self.win(&mut next, a),
            Step::Renew(a) => next.renew(a),
            Step::StayValid(a) => self.stay_valid(&mut next, a),
            Step::End(a) => self.end(&mut next, a),
            Step::Acquire(a, m) => self.acquire(&mut next, a, m),
            Step::Extend(a, m) => self.extend(&mut next, a, m),
            Step::Repair(a, m) => next.repair(a, m),
            Step::Free(m) => self.free(&mut next, m),
            Step::Restart(m) => self.restart(&mut next, m),
            Step::Jump(m) => self.jump(&mut next, m),
            Step::Tick => self.tick(&mut next),
        }
        let attempts = next.attempts.iter();
        if attempts.filter(|it| it.phase == Phase::Valid).count() > 1 {
            next.broken = Some(Promise::Exclusion);
        }
        self.forget(&mut next);
        Some(next)
    }

    fn format_step(&self, state: &State, step: Step) -> Option<String> {
        let next = self.next_state(state, step)?;
        Some(line(state, step, &next))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            // Only the first time, so that the history is a shortest one: stateright takes the last.
            Property::always(PROMISE, |model: &Self, state: &State| {
                let is_meant = model.promise.is_none() || model.promise == state.broken;
                let is_broken = is_meant && state.broken.is_some();
                !is_broken || model.is_broken.swap(true, Relaxed)
            }),
            Property::sometimes("a repair is sent", |_: &Self, state: &State| {
                state.count(0, |talk| talk.repair > 0) > 0
            }),
        ]
    }
}

impl Quorum {
    /// Returns the protocol without these rules.
    #[must_use]
    pub fn new(left_out: &'static [Rule], bounds: Bounds, promise: Option<Promise>) -> Self {
        Self {
            left_out,
            bounds,
            promise,
            is_broken: AtomicBool::new(false),
        }
    }

    pub(crate) fn has(&self, rule: Rule) -> bool {
        !self.left_out.contains(&rule)
    }

    /// True ticks after which the guard of a client with a slow clock ends.
    pub(crate) fn guard(&self) -> u8 {
        if self.has(Rule::Margin) { 2 } else { 3 }
    }

    /// How far apart the proposals of two ticks are. Right clocks are further apart than a counter counts in one run;
    /// wrong ones are as close together as it takes to mistake one answer for another.
    pub(crate) fn tick_length(&self) -> u8 {
        if self.bounds.wrong_clocks { 1 } else { 8 }
    }

    /// Whether members take both attempts for those of one owner.
    pub(crate) fn same_owner(&self, one: usize, other: usize) -> bool {
        one == other || !self.has(Rule::OwnerPerAttempt) && one % 2 == other % 2
    }

    pub(crate) fn holds(&self, member: &Member, a: usize) -> bool {
        let lease = member.lease;
        lease.is_some_and(|lease| self.same_owner(lease.attempt, a))
    }

    /// Drops what makes no difference to any promise, so that fewer states differ. It leaves the same steps possible, or
    /// takes a step that is allowed anyway and after which at least as much may happen.
    fn forget(&self, state: &mut State) {
        for a in 0..self.bounds.attempts {
            // Too few members are left that may grant and confirm.
            let may_count = |talk: &Talk| !matches!(talk.acquire, Acquire::Gone | Acquire::Busy(_));
            if state.attempts[a].is_pending() && state.count(a, may_count) < MAJORITY {
                self.end(state, a);
            }
            let attempt = state.attempts[a];
            // A confirmation has no effect where the lease is gone.
            if attempt.phase == Phase::Ended && self.has(Rule::ConfirmationOfHolder) {
                for member in &mut state.members {
                    let may_hold = self.holds(member, a) || member.talks[a].repair > 0;
                    let acquire = &mut member.talks[a].acquire;
                    if matches!(acquire, Acquire::Confirming(_)) && !may_hold {
                        *acquire = Acquire::Gone;
                    }
                }
            }
            // A lease outlives a guard that is no longer renewed.
            if !self.may_renew(&attempt) && self.has(Rule::DeadlineFromSending) {
                let outlives = (LEASE + attempt.age).saturating_sub(self.guard());
                state.leases(a).for_each(|it| it.age = it.age.max(outlives));
            }
        }
        let used = &state.attempts[..self.bounds.attempts];
        if used.iter().all(|attempt| attempt.phase != Phase::Unsent) {
            (state.wall, state.since_start) = (0, 0);
            let renews = used.iter().any(|attempt| self.may_renew(attempt));
            if !renews && self.has(Rule::SentAfterWait) {
                state.members.iter_mut().for_each(|it| it.out = None);
            }
        }
    }

    fn may_renew(&self, attempt: &Attempt) -> bool {
        let is_over = attempt.rounds == self.bounds.renewals && attempt.round.is_none();
        attempt.phase != Phase::Ended && !is_over
    }
}
