use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::election::{Election, Leadership};
use leasehold::env::{Entropy as _, SystemEntropy};
use leasehold::{Error, Guard, GuardSet};

use crate::commands::holding::elect::args::ElectArgs;
use crate::commands::holding::elect::backoff::Backoff;
use crate::locks::context::RunContext;
use crate::locks::held_locks::HeldLocks;
use crate::locks::request::WaitOutcome;
use crate::options::command_spec::CommandSpec;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::runtime::signals::Signals;
use crate::supervise::end::End;

/// A candidate, which runs a command while it leads.
pub(super) struct Candidate<'a> {
    pub(super) args: &'a ElectArgs,
    pub(super) command: &'a CommandSpec,
    pub(super) context: &'a RunContext<'a>,
    pub(super) signals: &'a Signals,
}

/// How a campaign ended.
enum Term {
    /// The program ends.
    Over(End),
    /// The leadership was lost after this time.
    Lost { led: Duration, end_requested: bool },
}

/// The result of the announcement.
enum Announced {
    Leads(Leadership),
    /// The leadership was lost before it was announced.
    Lost(Error),
    /// This signal asked the program to end.
    Signalled(i32),
}

impl Candidate<'_> {
    /// Campaigns and leads until the command ends by itself or a signal ends the program.
    pub(super) async fn campaign(&self) -> Result<End, Failure> {
        let mut backoff = Backoff::default();
        let mut has_led = false;
        loop {
            let led = match self.term().await {
                Ok(Term::Over(end)) => return Ok(end),
                Ok(Term::Lost { led, end_requested }) => {
                    if self.args.once || end_requested {
                        return Ok(End::Lost {
                            end_requested,
                            broken: None,
                        });
                    }
                    has_led = true;
                    led
                }
                // At first, the address may be wrong.
                Err(failure) if has_led && failure.code == ExitCode::UNREACHABLE => {
                    self.output()
                        .print_message(&Message::Warning(&failure.to_string()));
                    Duration::ZERO
                }
                Err(failure) => return Err(failure),
            };
            let pause = backoff.after(led, SystemEntropy.next_u64());
            self.output().print_message(&Message::Campaigns {
                name: &self.args.name,
                after: pause,
            });
            tokio::select! {
                biased;
                signal = self.signals.ending(self.output()) => {
                    return Ok(End::With(ExitCode::of_signal(signal?)));
                }
                () = SystemClock.sleep_until(SystemClock.now() + pause) => {}
            }
        }
    }

    /// Waits until it is elected, and leads as long as possible.
    async fn term(&self) -> Result<Term, Failure> {
        let signalled = |signal| Ok(Term::Over(End::With(ExitCode::of_signal(signal))));
        let guards = match self.context.request().acquire(self.signals).await? {
            WaitOutcome::Held(guards) => guards,
            WaitOutcome::Signalled(signal) => return signalled(signal),
        };
        let leadership = match self.announce(&guards).await? {
            Announced::Leads(leadership) => leadership,
            Announced::Signalled(signal) => return signalled(signal),
            Announced::Lost(error) => {
                self.print_lost(error.reason());
                return Ok(Term::Lost {
                    led: Duration::ZERO,
                    end_requested: false,
                });
            }
        };
        self.lead(leadership, guards).await
    }

    /// Announces that it leads.
    async fn announce(&self, guards: &GuardSet) -> Result<Announced, Failure> {
        let Some(guard) = guards.guard(&self.args.name) else {
            return Err(Failure::of("cannot lead", &"its lock is not held"));
        };
        let election = self.election();
        tokio::select! {
            biased;
            signal = self.signals.ending(self.output()) => signal.map(Announced::Signalled),
            announced = election.announce(guard.reenter()) => match announced {
                Ok(leadership) => Ok(Announced::Leads(leadership)),
                Err(error) if error.is_lost() => Ok(Announced::Lost(error)),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Runs the command, and resigns when the command has ended.
    async fn lead(&self, leadership: Leadership, guards: GuardSet) -> Result<Term, Failure> {
        self.output().print_message(&Message::Leads {
            name: &self.args.name,
            fence: leadership.fence(),
            value: &self.args.value,
        });
        // The wrapper and the leadership release theirs before.
        let last: Vec<_> = guards.guards().map(Guard::reenter).collect();
        let began = SystemClock.now();
        let end = tokio::select! {
            biased;
            end = self.context.perform(self.command, HeldLocks::Own(guards), self.signals, None) => end?,
            never = leadership.keep_announced() => match never {},
        };
        let led = SystemClock.now().since(began);
        if let End::Lost { end_requested, .. } = end {
            return Ok(Term::Lost { led, end_requested });
        }
        let limit = SystemClock.now() + RESIGN_LIMIT;
        let _ = within(&SystemClock, limit, leadership.resign()).await;
        let released = self.context.releasing().release(last).await;
        if let Some(loss) = released.lost {
            // The command has ended: by itself, or after a signal to the program.
            self.print_lost(&loss.reason);
            return Ok(Term::Over(End::Lost {
                end_requested: false,
                broken: None,
            }));
        }
        if let End::Ended { status, .. } = &end
            && released.is_complete
        {
            self.context.print_released(began, *status);
        }
        Ok(Term::Over(end))
    }

    fn election(&self) -> Election {
        let election = self.context.client.election(&self.args.name);
        let election = election.value(self.args.value.clone());
        match self.context.lock_options.ttl {
            Some(ttl) => election.ttl(ttl),
            None => election,
        }
    }

    fn output(&self) -> &Output {
        self.context.output
    }

    fn print_lost(&self, reason: &str) {
        let lock = &self.args.name;
        self.output().print_message(&Message::Lost { lock, reason });
    }
}

/// How long the end of the program waits for the withdrawal of the announcement.
const RESIGN_LIMIT: Duration = Duration::from_secs(2);
