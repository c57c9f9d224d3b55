//! `leasehold once`: runs a command unless its result exists, and keeps its result.

pub(crate) mod args;
mod capture;
mod inspect;
mod stored;

use std::future::Future;
use std::io;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::once::{Once, OnceResult, OnceRun, OnceStart};
use leasehold::store::exact_span;
use leasehold::{Effect, Error, ErrorKind, Guard, GuardSet};

use crate::commands::holding::once::args::{Failed, OnceArgs};
use crate::config;
use crate::locks::context::RunContext;
use crate::locks::held_locks::HeldLocks;
use crate::locks::request::WaitOutcome;
use crate::options::command_spec::CommandSpec;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::output::once_answer::OnceAnswer;
use crate::output::time_text::millis;
use crate::output::{self, Output};
use crate::runtime::runtime;
use crate::runtime::signals::Signals;
use crate::supervise::end::End;
use crate::system::require_own_processes;
use capture::Capture;
use stored::{KeptOutput, NoResult, Stored};

/// Runs a command once, or replays its result.
pub(crate) fn once(args: &OnceArgs, output: &Output) -> Result<ExitCode, Failure> {
    if args.show {
        return inspect::show(args, output);
    }
    if args.forget {
        return inspect::forget(args, output);
    }
    if args.list {
        return inspect::list(args, output);
    }
    let choice = config::choose_store(&args.store, output)?;
    let lock_options = args.lock_options(choice.defaults())?;
    let command = args.command_spec(&lock_options)?;
    require_own_processes()?;
    let (context, blocked) = RunContext::open(&lock_options, &choice, output)?;
    let end = runtime()?.block_on(async {
        let signals = Signals::new(blocked)?;
        let run = RequestRun {
            args,
            command: &command,
            context: &context,
        };
        run.answer(&signals).await
    })?;
    Ok(context.leave(end))
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_stored(bytes: &[u8]) {
    if let Ok(stored) = Stored::decode(bytes) {
        assert_eq!(stored.encode(), bytes);
    }
}

/// One call of the request.
struct RequestRun<'a> {
    args: &'a OnceArgs,
    command: &'a CommandSpec,
    context: &'a RunContext<'a>,
}

/// The result of an attempt, once it is in the store.
struct Committed {
    end: End,
    report: Option<ResultReport>,
}

/// The message about a result.
struct ResultReport {
    outcome: &'static str,
    fence: u64,
    stored: Stored,
    kept_for: Option<Duration>,
}

impl RequestRun<'_> {
    async fn answer(&self, signals: &Signals) -> Result<End, Failure> {
        let once = self.context.client.once(&self.args.name);
        let once = once.payload(self.args.payload());
        let once = self
            .context
            .lock_options
            .of_once(once.retention(self.args.retain));
        let looked = match self.unless_ended(signals, once.result()).await? {
            Ok(looked) => looked,
            Err(signal) => return Ok(End::With(ExitCode::of_signal(signal))),
        };
        match looked {
            Ok(Some(result)) => return self.replay(&result, signals).await,
            // No wait for the lock makes servers older.
            Err(error) if error.kind() == ErrorKind::Untrusted => return Err(error.into()),
            // A wait for the lock includes a wait for the store.
            Err(error) if !error.is_unreachable() => return Err(error.into()),
            Ok(None) | Err(_) => {}
        }
        let request = self.context.request();
        let guards = match request.acquire(signals).await? {
            WaitOutcome::Held(guards) => guards,
            WaitOutcome::Signalled(signal) => return Ok(End::With(ExitCode::of_signal(signal))),
        };
        // If dropped, it releases the lock, and leaves the request as it is or begun.
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
                self.replay(&result, signals).await
            }
            // This call holds the lock.
            OnceStart::InProgress(_) => Ok(End::With(ExitCode::of(self.args.busy_code))),
        }
    }

    async fn begin(&self, once: &Once, guards: &GuardSet) -> Result<OnceStart, Failure> {
        let guard = guards.guard(&self.args.name).map(Guard::reenter);
        match guard {
            Some(guard) => Ok(once.enter(guard).await?),
            None => Err(Failure::of("cannot begin", &"the lock is not held")),
        }
    }

    /// The result of `waiting`, or the signal that asks the program to end before.
    async fn unless_ended<T>(
        &self,
        signals: &Signals,
        waiting: impl Future<Output = T>,
    ) -> Result<Result<T, i32>, Failure> {
        tokio::select! {
            biased;
            answer = waiting => Ok(Ok(answer)),
            signal = signals.ending(self.context.output) => signal.map(Err),
        }
    }

    /// Runs the command, and commits its result while the lock is still held. Only then waits for the
    /// reader of its output.
    async fn attempt(
        &self,
        run: OnceRun,
        guards: GuardSet,
        signals: &Signals,
    ) -> Result<End, Failure> {
        let (mut capture, pipes) = Capture::new().map_err(|error| Failure::of_start(&error))?;
        // The wrapper releases its guard, and the commit another.
        let last: Vec<_> = guards.guards().map(Guard::reenter).collect();
        let began = SystemClock.now();
        let performing =
            self.context
                .perform(self.command, HeldLocks::Own(guards), signals, Some(pipes));
        let ended = capture.beside(performing).await;
        let ended = ended.map_err(|error| Failure::of("cannot pass on what CMD writes", &error))?;
        let end_requested = matches!(
            ended,
            Ok(End::Interrupted
                | End::Ended {
                    end_requested: true,
                    ..
                }
                | End::Lost {
                    end_requested: true,
                    ..
                })
        );
        let committed = self.commit(run, ended, capture.take_kept()).await;
        let released = self.context.releasing().release(last).await;
        if let Ok(Committed {
            end: End::Ended { status, .. },
            ..
        }) = &committed
            && released.is_complete
            && released.lost.is_none()
        {
            self.context.print_released(began, *status);
        }
        let showing = capture.show_the_rest();
        let shown = if end_requested {
            let limit = SystemClock.now() + READING_MAX;
            let showing = within(&SystemClock, limit, showing);
            self.unless_ended(signals, showing).await?.map(drop)
        } else {
            self.unless_ended(signals, showing).await?
        };
        let Committed { end, report } = committed?;
        if capture.stderr_is_shown()
            && let Some(report) = &report
        {
            self.print_report(report);
        }
        if let (Some(error), Some(report)) = (capture.take_stdout_error(), &report) {
            return Err(not_shown(&error, report));
        }
        match (shown, &end) {
            // Its result is committed, but was not read completely.
            (Err(signal), End::Ended { .. }) if !end_requested => {
                Ok(End::With(ExitCode::of_signal(signal)))
            }
            _ => Ok(end),
        }
    }

    /// Commits the result of the command, or that there is none to keep.
    async fn commit(
        &self,
        run: OnceRun,
        ended: Result<End, Failure>,
        (stdout, stderr): (KeptOutput, KeptOutput),
    ) -> Result<Committed, Failure> {
        let (end, status, end_requested) = match ended {
            Ok(
                end @ End::Ended {
                    status,
                    end_requested,
                    ..
                },
            ) => (end, status, end_requested),
            Ok(end) => {
                // The user who pressed the key did not want the result.
                if let End::Interrupted = end {
                    self.give_up(run).await;
                }
                return Ok(Committed { end, report: None });
            }
            Err(failure) => {
                if [ExitCode::NOT_FOUND, ExitCode::NOT_EXECUTABLE].contains(&failure.code) {
                    self.give_up(run).await;
                }
                return Err(failure);
            }
        };
        let stored = Stored {
            exit_code: ExitCode::of_command(status).get(),
            stdout,
            stderr,
        };
        let fence = run.guard().fence().get();
        // A failure after a signal to this program is not a result of the request.
        let is_retried = self.args.failed == Failed::Retry || end_requested;
        let (outcome, kept_for) = if !status.success() && is_retried {
            self.give_up(run).await;
            ("failed", None)
        } else {
            match run.commit(stored.encode()).await {
                Ok(result) => ("committed", Some(result.remaining)),
                Err(error) => return Err(not_kept(&stored, &error)),
            }
        };
        let report = Some(ResultReport {
            outcome,
            fence,
            stored,
            kept_for,
        });
        Ok(Committed { end, report })
    }

    async fn give_up(&self, run: OnceRun) {
        let limit = SystemClock.now() + GIVING_UP_MAX;
        let why = match within(&SystemClock, limit, run.give_up()).await {
            Some(Ok(())) => return,
            Some(Err(error)) => error.to_string(),
            None => format!("no answer within {}", exact_span(GIVING_UP_MAX)),
        };
        // The next call with this payload finds the request begun, and runs it as well.
        let text = format!("could not report to the store that the attempt ended: {why}");
        self.context.output.print_message(&Message::Warning(&text));
    }

    /// Replays the output of the command, and ends as it ended.
    async fn replay(&self, result: &OnceResult, signals: &Signals) -> Result<End, Failure> {
        let stored = Stored::decode(&result.bytes).map_err(|NoResult| {
            let text = format!(
                "the result of {:?} is not that of a command; another program made this request",
                self.args.name
            );
            Failure::new(ExitCode::CORRUPT, text)
        })?;
        let (stdout, stderr) = (stored.stdout.bytes.clone(), stored.stderr.bytes.clone());
        let writing = output::apart(move || output::replay(&stdout, &stderr));
        let report = ResultReport {
            outcome: "replayed",
            fence: result.fence.get(),
            stored,
            kept_for: Some(result.remaining),
        };
        match self.unless_ended(signals, writing).await? {
            Ok(written) => written.map_err(|error| not_shown(&error, &report))?,
            Err(signal) => return Ok(End::With(ExitCode::of_signal(signal))),
        }
        self.print_report(&report);
        Ok(End::With(ExitCode::of(report.stored.exit_code)))
    }

    fn warn_of_cuts(&self, stored: &Stored) {
        for (name, kept) in [("stdout", &stored.stdout), ("stderr", &stored.stderr)] {
            if kept.is_cut {
                let text = format!(
                    "only the first {} bytes of {name} are kept",
                    KeptOutput::MAX
                );
                self.context.output.print_message(&Message::Warning(&text));
            }
        }
    }

    fn print_report(&self, report: &ResultReport) {
        let stored = &report.stored;
        // Output that is not kept was not cut.
        if report.kept_for.is_some() {
            self.warn_of_cuts(stored);
        }
        let kept = |kept: &KeptOutput| (kept.bytes.len(), kept.is_cut);
        self.context
            .output
            .print_message(&Message::Once(OnceAnswer {
                key: &self.args.name,
                outcome: report.outcome,
                fence: report.fence,
                exit_code: stored.exit_code,
                stdout: kept(&stored.stdout),
                stderr: kept(&stored.stderr),
                kept_for_ms: report.kept_for.map(millis),
            }));
    }
}

/// How long discarding the attempt in the store may delay the end. Signals are not read meanwhile.
const GIVING_UP_MAX: Duration = Duration::from_secs(3);

/// How long a call that got a signal waits for the reader of the output.
const READING_MAX: Duration = Duration::from_secs(1);

/// The result is decided, but its output could not be written to stdout.
fn not_shown(error: &io::Error, report: &ResultReport) -> Failure {
    let failure = Failure::of_stdout(error);
    let fate = match report.kept_for {
        Some(_) => "its result is kept; the same call replays it",
        None => "its result is not kept",
    };
    let text = format!(
        "{failure}; CMD ended with {}, and {fate}",
        report.stored.exit_code
    );
    Failure::new(failure.code, text)
}

/// The command has run, and this call cannot show its result; perhaps the next one can.
fn not_kept(stored: &Stored, error: &Error) -> Failure {
    let fate = match error.effect() {
        Effect::Unknown => "it is unknown whether its result is kept",
        Effect::None => "its result is not kept",
    };
    let text = format!("CMD ended with {}, and {fate}: {error}", stored.exit_code);
    Failure::new(ExitCode::of_error(error), text)
}
