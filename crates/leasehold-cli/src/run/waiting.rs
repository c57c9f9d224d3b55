use std::future::pending;
use std::io;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::{Client, Error, Guard, Holder, Lock, Mode, Owner};
use nix::sys::signal::{Signal, raise};

use crate::args::RunArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::holder_text;
use crate::message::Message;
use crate::output::Output;
use crate::run::nesting::Nesting;
use crate::run::signals::Signals;

/// The wish for a lock, and everything that is said while it is not granted.
pub(super) struct Request<'a> {
    pub(super) client: &'a Client,
    pub(super) lock: Lock,
    pub(super) args: &'a RunArgs,
    pub(super) mode: Mode,
    pub(super) nesting: &'a Nesting,
    pub(super) output: &'a Output,
}

/// How a wait ended, unless it failed.
pub(super) enum Wait {
    Held(Guard),
    /// This signal asked the program to end. Nothing is held, nothing queued.
    Signalled(i32),
}

impl Request<'_> {
    pub(super) async fn acquire(&self, signals: &Signals) -> Result<Wait, Failure> {
        let began = SystemClock.now();
        let outcome = tokio::select! {
            biased;
            signal = self.ending_signal(signals) => {
                let signal = signal.map_err(|error| Failure::of("cannot read signals", &error));
                signal.map(Wait::Signalled)
            }
            guard = self.hold() => guard.map(Wait::Held),
        };
        self.output.clear_status();
        if let Ok(Wait::Held(guard)) = &outcome {
            self.output.say(&Message::Acquired {
                lock: &self.args.name,
                fence: guard.fence(),
                store: &self.client.describe(),
                after: SystemClock.now().since(began),
            });
        }
        outcome
    }

    async fn hold(&self) -> Result<Guard, Failure> {
        self.refuse_deadlock().await?;
        let granted = if self.args.no_wait {
            self.lock.try_acquire().await?
        } else {
            tokio::select! {
                biased;
                granted = self.lock.acquire() => match granted {
                    Ok(guard) => Some(guard),
                    Err(error) if error.is_busy() => None,
                    Err(error) => return Err(error.into()),
                },
                () = self.report_progress() => None,
            }
        };
        match granted {
            Some(guard) => Ok(guard),
            None => Err(self.busy().await),
        }
    }

    /// A lock that is held around this run is freed only after it: waiting would never end.
    async fn refuse_deadlock(&self) -> Result<(), Failure> {
        if !self.nesting.is_nested() {
            return Ok(());
        }
        // A store that does not answer is reported by the attempt that follows.
        let holders = self.holders().await.unwrap_or_default();
        match self.nesting.deadlock(&holders, self.mode) {
            None => Ok(()),
            Some(holder) => Err(Failure::usage(format!(
                "lock {:?} is held around this command, by {}: waiting for it would never end",
                self.args.name,
                holder_text::phrase(holder)
            ))),
        }
    }

    /// Says who holds the lock: on a terminal again and again, elsewhere once, for programs
    /// whenever it changes. Never ends.
    async fn report_progress(&self) {
        let began = SystemClock.now();
        let terminal = self.output.has_terminal();
        let mut said: Option<Vec<Option<Owner>>> = None;
        SystemClock.sleep_until(began + FIRST_REPORT).await;
        loop {
            let holders = self.holders().await.unwrap_or_default();
            let message = Message::Waiting {
                lock: &self.args.name,
                holders: &holders,
                so_far: SystemClock.now().since(began),
            };
            // Granted while the question was under way: the answer to the wish comes next.
            let is_ours = |owner: Owner| owner.client() == self.client.id();
            if holders
                .iter()
                .any(|holder| holder.owner.is_some_and(is_ours))
            {
                return pending().await;
            }
            let owners: Vec<_> = holders.iter().map(|holder| holder.owner).collect();
            if terminal {
                self.output.show_status(&message);
            } else if !holders.is_empty() && said.as_ref() != Some(&owners) {
                self.output.say(&message);
                if !self.args.json {
                    return pending().await;
                }
                said = Some(owners);
            }
            SystemClock
                .sleep_until(SystemClock.now() + NEXT_REPORT)
                .await;
        }
    }

    async fn busy(&self) -> Failure {
        let limit = SystemClock.now() + LAST_LOOK;
        let holders = within(&SystemClock, limit, self.holders()).await;
        let holders = holders.and_then(Result::ok).unwrap_or_default();
        let held = if holders.is_empty() {
            "was held by somebody else a moment ago".into()
        } else {
            format!("is held by {}", holder_text::phrases(&holders))
        };
        let waited = match self.args.wait {
            Some(wait) if !self.args.no_wait => {
                format!(" after waiting {}", humantime::format_duration(wait))
            }
            _ => String::new(),
        };
        let code = ExitCode::of(self.args.busy_code);
        Failure::new(code, format!("lock {:?} {held}{waited}", self.args.name))
    }

    async fn holders(&self) -> Result<Vec<Holder>, Error> {
        self.client.holders(&self.args.name).await
    }

    /// Resolves with a signal that asks the program to end. Until there is a command to stop, a
    /// stop from the keyboard stops the program itself.
    async fn ending_signal(&self, signals: &Signals) -> io::Result<i32> {
        loop {
            let signal = signals.next().await?;
            if signal.ends() {
                return Ok(signal.number);
            }
            if signal.is_stop() {
                self.output.clear_status();
                raise(Signal::SIGSTOP)?;
            }
        }
    }
}

/// Short waits pass unnoticed.
const FIRST_REPORT: Duration = Duration::from_millis(300);
const NEXT_REPORT: Duration = Duration::from_secs(1);
/// How long the question who holds a busy lock may delay the answer that it is busy.
const LAST_LOOK: Duration = Duration::from_millis(500);
