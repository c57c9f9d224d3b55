use std::sync::Arc;
use std::time::Duration;

use leasehold::Effect;
use leasehold::look::Owner;
use leasehold::member::PermitSlot;
use leasehold::store::{LockRequest, ReleaseReply, RenewReply};
use leasehold::{Error, Mode};
use leasehold_quorum::{Acquired, Operation, Outcome, ReleaseMode};

use crate::actions::guards::deadline;
use crate::history::{Asked, Denial, Freed, Manner, Wait, What};
use crate::plan::LockUse;
use crate::state::agenda::Action;
use crate::state::program::{Guard, Program, ProgramState, Purpose};
use crate::state::simulation::Simulation;
use crate::time::{MILLIS, Time};

impl Simulation {
    fn program(&mut self, client: usize, program: usize) -> &mut Program {
        &mut self.clients[client].programs[program]
    }

    /// Moves a program to its next state. It continues there after `span`, if at all.
    pub(crate) fn set_program(
        &mut self,
        client: usize,
        program: usize,
        state: ProgramState,
        span: Option<Time>,
    ) {
        let it = self.program(client, program);
        it.state = state;
        it.token += 1;
        let token = it.token;
        if let Some(span) = span {
            let action = Action::Program {
                client,
                program,
                token,
            };
            self.agenda.add(self.now + span, action);
        }
    }

    pub(crate) fn rest(&mut self, client: usize, program: usize) {
        let longest = self.plan.idle_max;
        let span = self.program(client, program).rng.between(0, longest);
        self.set_program(client, program, ProgramState::Idle, Some(span));
    }

    pub(crate) fn program_due(&mut self, client: usize, program: usize, token: u64) {
        if self.program(client, program).token != token {
            return;
        }
        if !self.clients[client].is_running() {
            let action = Action::Program {
                client,
                program,
                token,
            };
            if !self.clients[client].is_gone() {
                self.clients[client].late.push(action);
            }
            return;
        }
        let state = self.program(client, program).state;
        match state {
            ProgramState::Idle if self.is_quiet => {
                self.set_program(client, program, ProgramState::Over, None);
            }
            ProgramState::Idle => self.ask(client, program),
            ProgramState::Waiting(wait, operation) => {
                self.add(What::Cancelled { wait });
                let now = self.clients[client].now(self.now);
                self.clients[client].operations.remove(&operation);
                self.clients[client].engine.cancel(now, operation);
                self.rest(client, program);
            }
            ProgramState::Holding(wait) => self.give_back(client, program, wait),
            ProgramState::Releasing | ProgramState::Over => {}
        }
        self.turn(client);
    }

    /// Asks for a lock.
    fn ask(&mut self, client: usize, program: usize) {
        let plan = Arc::clone(&self.plan);
        let rng = self.program(client, program).rng.clone();
        let lock = rng.index(plan.locks.len());
        let mode = plan.locks[lock].mode(&rng);
        let term = *rng.pick(&plan.ttls);
        let delay = match rng.percent(plan.lock_delays) {
            true if term < crate::plan::Plan::MAX_TTL => 300 * MILLIS,
            _ => 0,
        };
        let manner = match rng.below(100) {
            draw if draw < plan.tries => Manner::Try,
            draw if draw < plan.tries + plan.barges => Manner::Barging,
            _ => Manner::Queued,
        };
        let now = self.clients[client].now(self.now);
        let it = &self.clients[client];
        let owner = Owner::at(it.info.id, now.wall, &rng);
        let wait = self.owners.add(|_| owner.to_ascii().to_vec());
        let ttl = Duration::from_micros(term);
        let key = self.locks[lock].key.clone();
        let lock_request = LockRequest::new(key, owner, ttl, now.wall, Arc::clone(&it.info))
            .with_mode(mode)
            .with_delay(Duration::from_micros(delay))
            .waiting(manner == Manner::Queued)
            .barging(manner == Manner::Barging);
        let lock_request = Arc::new(lock_request);
        let ttl = term + delay;
        self.add(What::Asked(Asked {
            wait,
            client,
            lock,
            mode,
            ttl,
            delay,
            manner,
        }));
        let operation = Operation::Acquire(Arc::clone(&lock_request));
        let operation = self.clients[client].start(now, operation);
        let purpose = Purpose::Acquire {
            program,
            wait,
            lock_request,
        };
        self.clients[client].operations.insert(operation, purpose);
        let limit = rng.percent(plan.cancels).then(|| match rng.below(3) {
            0 => rng.below(5 * MILLIS),
            1 => rng.below(200 * MILLIS),
            _ => rng.below(2_000 * MILLIS),
        });
        self.set_program(
            client,
            program,
            ProgramState::Waiting(wait, operation),
            limit,
        );
    }

    /// Handles the outcome of an operation.
    pub(crate) fn conclude(&mut self, client: usize, purpose: Purpose, outcome: Outcome) {
        match (purpose, outcome) {
            (
                Purpose::Acquire {
                    program,
                    wait,
                    lock_request,
                },
                Outcome::Acquired(acquired),
            ) => {
                self.hold(client, program, wait, &lock_request, &acquired);
            }
            (Purpose::Acquire { program, wait, .. }, outcome) => {
                let reason = match outcome {
                    Outcome::Failed(error) => denial(&error),
                    _ => Denial::Busy,
                };
                self.add(What::Denied { wait, reason });
                self.rest(client, program);
            }
            (Purpose::Renew { waits, sent }, Outcome::Renewed(results)) => {
                for (wait, renewal) in waits.into_iter().zip(results) {
                    self.renewed(client, wait, sent, &renewal);
                }
            }
            (Purpose::Renew { waits, sent }, Outcome::Failed(error)) => {
                for wait in waits {
                    self.renewed(client, wait, sent, &RenewReply::Unknown(error.clone()));
                }
            }
            (Purpose::Release { wait, program }, outcome) => {
                let outcome = match outcome {
                    Outcome::Released(ReleaseReply::Released) => Freed::Released,
                    Outcome::Released(ReleaseReply::WasLost) => Freed::WasLost,
                    _ => Freed::Unknown,
                };
                self.add(What::Released { wait, outcome });
                if let Some(program) = program {
                    self.rest(client, program);
                }
            }
            (Purpose::Record(step), outcome) => self.record_answered(client, step, outcome),
            (purpose, outcome) => self.note(|| format!("odd outcome {outcome:?} of {purpose:?}")),
        }
    }

    fn hold(
        &mut self,
        client: usize,
        program: usize,
        wait: Wait,
        lock_request: &LockRequest,
        got: &Acquired,
    ) {
        let it = &self.clients[client];
        let slotted = |slot: PermitSlot| lock_request.clone().with_slot(slot);
        let lock_request = got.slot.map_or_else(|| lock_request.clone(), slotted);
        let lock_request = Arc::new(lock_request.with_owner(got.owner));
        let deadline = deadline(&lock_request, &got.term);
        let until = it.clock.when(deadline);
        let fence = got.fence;
        self.add(What::Granted {
            wait,
            fence: fence.get(),
            until,
        });
        self.stats.grants += 1;
        let rng = self.program(client, program).rng.clone();
        let spread =
            Duration::from_micros(rng.below(lock_request.usable_ttl().as_micros() as u64 / 5));
        let renew_at = got.term.since + (lock_request.usable_ttl() / 3).saturating_sub(spread);
        let guard = Guard {
            program,
            lock_request,
            fence,
            deadline,
            renew_at,
            renewing: false,
        };
        let span = match rng.below(100) {
            // All remaining waiters get their turn.
            _ if self.is_quiet => rng.between(0, 20 * MILLIS),
            0..10 => rng.between(0, 3 * guard.lock_request.ttl.as_micros() as u64),
            _ => rng.between(0, self.plan.hold_max),
        };
        self.open_record(client, &guard);
        self.clients[client].guards.insert(wait, guard);
        self.set_program(client, program, ProgramState::Holding(wait), Some(span));
    }

    fn give_back(&mut self, client: usize, program: usize, wait: Wait) {
        let rng = self.program(client, program).rng.clone();
        let Some(guard) = self.clients[client].guards.get_mut(&wait) else {
            return self.rest(client, program);
        };
        let lock = self
            .locks
            .iter()
            .position(|keys| keys.key == guard.lock_request.key);
        let is_shareable = lock.is_some_and(|lock| {
            matches!(self.plan.locks[lock], LockUse::Readers(_))
                && guard.lock_request.mode == Mode::Exclusive
        });
        if is_shareable && rng.percent(25) {
            guard.lock_request =
                Arc::new(LockRequest::clone(&guard.lock_request).with_mode(Mode::Shared));
            guard.renewing = false;
            self.add(What::Downgraded { wait });
            self.renew(client, vec![wait]);
            let span = rng.between(0, self.plan.hold_max);
            return self.set_program(client, program, ProgramState::Holding(wait), Some(span));
        }
        let mode = match rng.percent(3) {
            true => ReleaseMode::Detach,
            false => ReleaseMode::HandOver,
        };
        // Some callers drop the guard and continue at once.
        let waits = mode == ReleaseMode::HandOver && rng.percent(60);
        self.release(client, wait, mode, waits.then_some(program));
        if waits {
            self.set_program(client, program, ProgramState::Releasing, None);
        } else {
            self.rest(client, program);
        }
    }

    pub(crate) fn release(
        &mut self,
        client: usize,
        wait: Wait,
        mode: ReleaseMode,
        program: Option<usize>,
    ) {
        let Some(guard) = self.clients[client].guards.remove(&wait) else {
            return;
        };
        self.add(What::Ended { wait });
        if mode == ReleaseMode::Detach {
            self.add(What::Detached { wait });
        }
        let now = self.clients[client].now(self.now);
        let operation = Operation::Release(guard.lock_request, mode);
        let operation = self.clients[client].start(now, operation);
        let purpose = Purpose::Release { wait, program };
        self.clients[client].operations.insert(operation, purpose);
    }
}

fn denial(error: &Error) -> Denial {
    Denial::Failed {
        kind: error.kind(),
        without_effect: error.effect() == Effect::None,
    }
}
