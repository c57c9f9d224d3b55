//! The verb `once`: run a command unless its result is there, and keep its result.

mod capture;
mod stored;

use std::future::Future;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::{Effect, Error, ErrorKind, GuardSet, Once, OnceResult, OnceRun, OnceStart};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::holder_text::millis;
use crate::message::Message;
use crate::once_answer::OnceAnswer;
use crate::once_args::{Failed, OnceArgs};
use crate::output::{self, Output};
use crate::run::end::End;
use crate::run::hold::Hold;
use crate::run::signals::Signals;
use crate::run::stage::{Stage, cannot_start};
use crate::run::waiting::Wait;
use crate::status::runtime;
use crate::work::Work;
use capture::Capture;
use stored::{Kept, NoResult, Stored};

pub(super) use capture::Pipes;

/// Runs a command once, or shows what it did.
pub(crate) fn once(args: &OnceArgs, output: &Output) -> Result<ExitCode, Failure> {
    let wish = args.wish();
    let work = args.work(&wish)?;
    let (stage, blocked) = Stage::set(&wish, &args.store, output)?;
    let end = runtime()?.block_on(async {
        let signals = Signals::new(blocked).map_err(|error| cannot_start(&error))?;
        let call = Call {
            args,
            work: &work,
            stage: &stage,
        };
        call.answer(&signals).await
    })?;
    Ok(stage.leave(end))
}

/// One call of the request.
struct Call<'a> {
    args: &'a OnceArgs,
    work: &'a Work,
    stage: &'a Stage<'a>,
}

impl Call<'_> {
    async fn answer(&self, signals: &Signals) -> Result<End, Failure> {
        let once = self.stage.client.once(&self.args.name);
        let once = once.payload(self.args.payload());
        let once = once.retention(self.args.retain).ttl(self.args.ttl);
        let looked = match self.unless_ended(signals, once.result()).await? {
            Ok(looked) => looked,
            Err(signal) => return Ok(End::With(ExitCode::of_signal(signal))),
        };
        match looked {
            Ok(Some(result)) => return self.replay(&result),
            // Whoever waits for the lock waits for the store, too.
            Err(error) if !error.is_unreachable() => return Err(error.into()),
            Ok(None) | Err(_) => {}
        }
        let request = self.stage.request();
        let guards = match request.acquire(signals).await? {
            Wait::Held(guards) => guards,
            Wait::Signalled(signal) => return Ok(End::With(ExitCode::of_signal(signal))),
        };
        // Dropped, it gives the lock back, and leaves the request as it is or begun.
        let begun = match self
            .unless_ended(signals, self.begin(&once, &guards))
            .await?
        {
            Ok(begun) => begun?,
            Err(signal) => {
                guards.release().await;
                return Ok(End::With(ExitCode::of_signal(signal)));
            }
        };
        match begun {
            OnceStart::Run(run) => self.attempt(run, guards, signals).await,
            OnceStart::Done(result) => {
                guards.release().await;
                self.replay(&result)
            }
            // The lock is ours.
            OnceStart::InProgress(_) => Ok(End::With(ExitCode::of(self.args.busy_code))),
        }
    }

    async fn begin(&self, once: &Once, guards: &GuardSet) -> Result<OnceStart, Failure> {
        let guard = guards.guard(&self.args.name).map(leasehold::Guard::share);
        match guard {
            Some(guard) => Ok(once.enter(guard).await?),
            None => Err(Failure::of("cannot begin", &"the lock is not held")),
        }
    }

    /// What `asking` comes to, unless this signal asks the program to end before.
    async fn unless_ended<T>(
        &self,
        signals: &Signals,
        asking: impl Future<Output = T>,
    ) -> Result<Result<T, i32>, Failure> {
        tokio::select! {
            biased;
            signal = signals.ending(self.stage.output) => {
                signal.map(Err).map_err(|error| Failure::of("cannot read signals", &error))
            }
            answer = asking => Ok(Ok(answer)),
        }
    }

    /// Runs the command, and keeps its result while the lock is still held.
    async fn attempt(
        &self,
        run: OnceRun,
        guards: GuardSet,
        signals: &Signals,
    ) -> Result<End, Failure> {
        let (mut capture, pipes) =
            Capture::new().map_err(|error| Failure::of("cannot start", &error))?;
        let performing = self
            .stage
            .perform(self.work, Hold::Own(guards), signals, Some(pipes));
        let ended = capture.beside(performing).await;
        match ended.map_err(|error| Failure::of("cannot pass on what CMD writes", &error))? {
            Ok(ended @ End::Ended { .. }) => self.end(run, ended, capture).await,
            // Whoever pressed the key did not want the result.
            Ok(End::Interrupted) => {
                self.give_up(run).await;
                Ok(End::Interrupted)
            }
            Ok(end) => Ok(end),
            Err(failure) => {
                if [ExitCode::NOT_FOUND, ExitCode::NOT_EXECUTABLE].contains(&failure.code) {
                    self.give_up(run).await;
                }
                Err(failure)
            }
        }
    }

    /// Commits what the command did, or that it did nothing that counts.
    async fn end(&self, run: OnceRun, ended: End, capture: Capture) -> Result<End, Failure> {
        let End::Ended {
            status,
            told_to_end,
        } = ended
        else {
            return Ok(ended);
        };
        let (stdout, stderr) = capture.into_kept();
        let stored = Stored {
            exit_code: ExitCode::of_command(status).get(),
            stdout,
            stderr,
        };
        let fence = run.guard().fence().get();
        // A failure that this program was told to cause is no result of the request.
        let is_retried = self.args.failed == Failed::Retry || told_to_end;
        if !status.success() && is_retried {
            self.give_up(run).await;
            self.tell("failed", fence, &stored, None);
            return Ok(ended);
        }
        match run.commit(stored.encode()).await {
            Ok(result) => {
                self.warn_of_cuts(&stored);
                self.tell("committed", fence, &stored, Some(result.remaining));
                Ok(ended)
            }
            Err(error) => Err(not_kept(&stored, &error)),
        }
    }

    async fn give_up(&self, run: OnceRun) {
        let limit = SystemClock.now() + GIVING_UP_MAX;
        let why = match within(&SystemClock, limit, run.give_up()).await {
            Some(Ok(())) => return,
            Some(Err(error)) => error.to_string(),
            None => format!("no answer within {GIVING_UP_MAX:?}"),
        };
        // The next call with this payload finds the request begun, and runs it, too.
        let text = format!("the store does not know yet that the attempt ended: {why}");
        self.stage.output.say(&Message::Warning(&text));
    }

    /// Writes what the command wrote, and ends as it ended.
    fn replay(&self, result: &OnceResult) -> Result<End, Failure> {
        let stored = Stored::decode(&result.bytes).map_err(|NoResult| {
            let text = format!(
                "the result of {:?} is none of a command: another program made this request",
                self.args.name
            );
            Failure::new(ExitCode::CORRUPT, text)
        })?;
        output::replay(&stored.stdout.bytes, &stored.stderr.bytes)
            .map_err(|error| Failure::of_stdout(&error))?;
        self.warn_of_cuts(&stored);
        let fence = result.fence.get();
        self.tell("replayed", fence, &stored, Some(result.remaining));
        Ok(End::With(ExitCode::of(stored.exit_code)))
    }

    fn warn_of_cuts(&self, stored: &Stored) {
        for (name, kept) in [("stdout", &stored.stdout), ("stderr", &stored.stderr)] {
            if kept.is_cut {
                let text = format!(
                    "of {name} the first {} bytes are kept, and no more",
                    Kept::MAX
                );
                self.stage.output.say(&Message::Warning(&text));
            }
        }
    }

    fn tell(&self, outcome: &str, fence: u64, stored: &Stored, kept_for: Option<Duration>) {
        let kept = |kept: &Kept| (kept.bytes.len(), kept.is_cut);
        self.stage.output.say(&Message::Once(OnceAnswer {
            key: &self.args.name,
            outcome,
            fence,
            exit_code: stored.exit_code,
            stdout: kept(&stored.stdout),
            stderr: kept(&stored.stderr),
            kept_for_ms: kept_for.map(millis),
        }));
    }
}

/// How long the end may be delayed by telling the store that nothing came of it. Nobody reads signals
/// meanwhile.
const GIVING_UP_MAX: Duration = Duration::from_secs(3);

/// The command has run, and nobody will see its result by this call; perhaps by the next one.
fn not_kept(stored: &Stored, error: &Error) -> Failure {
    let code = match error.kind() {
        ErrorKind::Fenced => ExitCode::LOST,
        _ => ExitCode::of_error(error),
    };
    let fate = match error.effect() {
        Effect::Unknown => "whether its result is kept cannot be told",
        Effect::None => "its result is not kept",
    };
    let text = format!("CMD ended with {}, and {fate}: {error}", stored.exit_code);
    Failure::new(code, text)
}
