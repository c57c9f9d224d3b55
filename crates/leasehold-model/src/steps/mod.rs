//! All that may happen next in a state.
//!
//! A message that was sent may arrive at any later step or never, so loss and delay need no steps
//! of their own. Neither does a client that pauses: nothing makes it act.

use crate::bounds::{Bounds, Sets};
use crate::rules::Rules;
use crate::state::{ATTEMPTS, ROUNDS};
use crate::state::{Acquire, Attempt, Confirmation, Left, Member, Phase, Renewal, Repair};
use crate::state::{MemberTrust, ModelState, Talk};

mod client;
mod forget;
mod member;
mod mishap;
mod step;
mod time;

pub use step::{AcquireReply, FoundKey, Step};

/// The protocol, and how much of it a search tries.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The rules that clients and members follow.
    pub rules: Rules,
    /// How much may happen.
    pub bounds: Bounds,
    /// Whether states are one if they differ only in what makes no difference.
    pub forgets: bool,
}

impl Model {
    /// The states in which a run may begin.
    #[must_use]
    pub fn initial<const N: usize>(&self) -> Vec<ModelState<N>> {
        let range = usize::from(self.bounds.spread) + 1;
        (0..range.pow(N as u32))
            .map(|code| {
                let apart = |member| (code / range.pow(member as u32) % range) as u8;
                self.state(std::array::from_fn(|member| {
                    self.lowest_counter() + apart(member)
                }))
            })
            .collect()
    }

    fn state<const N: usize>(&self, counters: [u8; N]) -> ModelState<N> {
        let talk = |attempt, member| Talk {
            listed: self.bounds.sets.lists(self.client(attempt), member),
            acquire: Acquire::Gone,
            barred: false,
            confirmation: Confirmation::Gone,
            renewals: [Renewal::Gone; ROUNDS],
            repair: Repair::Gone,
        };
        ModelState {
            members: std::array::from_fn(|member| Member {
                counter: counters[member],
                lease: None,
                trust: MemberTrust::Sound,
                talks: std::array::from_fn(|attempt| talk(attempt, member)),
            }),
            attempts: [Attempt {
                phase: Phase::Unsent,
                age: 0,
                proposal: 0,
                fence: 0,
                rounds: 0,
                round_age: None,
            }; ATTEMPTS],
            wall: 1,
            since_start: 0,
            greatest: 0,
            left: Left {
                restarts: self.bounds.restarts,
                jumps: self.bounds.jumps,
                repeats: self.bounds.repeats,
            },
        }
    }

    /// Hands every step from `state`, with the state after it, to `next`.
    pub fn steps<const N: usize>(
        &self,
        state: &ModelState<N>,
        mut next: impl FnMut(Step, ModelState<N>),
    ) {
        if self.forgets && self.is_over(state) {
            return;
        }
        let mut steps = Steps {
            model: self,
            state,
            next: &mut next,
        };
        steps.client_steps();
        steps.member_steps();
        steps.time_steps();
    }

    /// Whether attempts differ only in what they know.
    #[must_use]
    pub fn attempts_are_alike(&self) -> bool {
        self.forgets
            && self.rules.owner_per_attempt
            && self.bounds.clients == self.bounds.attempts
            && matches!(self.bounds.sets, Sets::Three | Sets::Five)
    }

    /// The client that makes `attempt`.
    fn client(&self, attempt: usize) -> usize {
        attempt % usize::from(self.bounds.clients)
    }

    /// Whether a member takes both attempts for those of one owner.
    pub(crate) fn same_owner(&self, one: usize, other: usize) -> bool {
        if self.rules.owner_per_attempt {
            one == other
        } else {
            self.client(one) == self.client(other)
        }
    }

    /// Whether the answer of a member counts, given whether its request was sent before its wait
    /// ended.
    fn trusted(&self, member: &Member, barred: bool) -> bool {
        if self.rules.trust.sent_after_wait {
            !barred
        } else {
            !member.is_out()
        }
    }
}

/// The search for all steps from one state.
struct Steps<'a, const N: usize> {
    model: &'a Model,
    state: &'a ModelState<N>,
    next: &'a mut dyn FnMut(Step, ModelState<N>),
}

impl<const N: usize> Steps<'_, N> {
    fn emit(&mut self, step: Step, mut after: ModelState<N>) {
        if self.model.forgets {
            self.model.forget(&mut after);
        }
        (self.next)(step, after);
    }
}
