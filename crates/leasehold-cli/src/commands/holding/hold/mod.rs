//! `leasehold hold`: holds a lock for a script.

pub(crate) mod args;
mod report;
mod stdin;

use std::io;
use std::pin::pin;
use std::time::Duration;

use leasehold::GuardSet;
use leasehold::clock::{Clock as _, SystemClock, within};
use serde_json::Value;

use crate::commands::holding::hold::args::HoldArgs;
use crate::config;
use crate::locks::context::RunContext;
use crate::locks::lost_lock::LostLock;
use crate::locks::release::Releasing;
use crate::locks::request::WaitOutcome;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::output::{self, Output};
use crate::readiness::watched;
use crate::runtime::runtime;
use crate::runtime::signals::Signals;
use stdin::{Stdin, Watched};

/// Holds a lock until stdin closes, a signal arrives, or the lock is lost.
pub(crate) fn hold(args: &HoldArgs, output: &Output) -> Result<ExitCode, Failure> {
    let stdin = match args.ignore_stdin {
        true => None,
        false => Some(Stdin::to_be_watched()?),
    };
    let choice = config::choose_store(&args.lock.store, output)?;
    let lock_options = args
        .lock
        .lock_options(&args.name, args.json, choice.defaults())?;
    let (context, blocked) = RunContext::open(&lock_options, &choice, output)?;
    runtime()?.block_on(watched(async {
        let signals = Signals::new(blocked)?;
        let stdin = stdin.map(Stdin::watch).transpose();
        let stdin = stdin.map_err(|error| Failure::of_start(&error))?;
        let request = context.request();
        let began = SystemClock.now();
        let wait = tokio::select! {
            biased;
            () = stdin::closed(stdin.as_ref()) => {
                let text = format!("lock {:?} was not acquired before stdin was closed", lock_options.name);
                return Err(Failure::busy(ExitCode::of(lock_options.busy_code), text));
            }
            wait = request.acquire(&signals) => wait?,
        };
        let guards = match wait {
            WaitOutcome::Held(guards) => guards,
            WaitOutcome::Signalled(signal) => return Ok(ExitCode::of_signal(signal)),
        };
        let waited = SystemClock.now().since(began);
        let held = report::held(&lock_options, &guards, &context.client.to_string(), waited);
        let fence = guards.fence(&lock_options.name).map(|fence| fence.get().into());
        output.mark_ready(&lock_options.name, fence.as_ref());
        keep(guards, held, &signals, stdin.as_ref(), &context.releasing()).await
    }))
}

/// Holds the lock, prints `held` meanwhile, and releases the lock at the end. A script that does not
/// read stdout delays neither the loss nor the release.
async fn keep(
    guards: GuardSet,
    held: Value,
    signals: &Signals,
    stdin: Option<&Watched>,
    releasing: &Releasing<'_>,
) -> Result<ExitCode, Failure> {
    let output = releasing.output;
    let mut printing = pin!(print(held));
    let mut is_printed = false;
    let code = loop {
        tokio::select! {
            biased;
            lost = guards.lost() => {
                if !is_printed {
                    // Its two lines have an order.
                    let _ = within(&SystemClock, SystemClock.now() + READING_MAX, printing).await;
                }
                let code = print_loss(&LostLock::of(lost), output).await;
                // A release would say that the script works no longer, and would open a lock that was broken.
                std::mem::forget(guards);
                return Ok(code);
            }
            printed = &mut printing, if !is_printed => match printed {
                Ok(()) => is_printed = true,
                Err(error) => {
                    // The script does not know that the lock is held, so release it.
                    releasing.release(guards.into_guards()).await;
                    return Err(Failure::of_stdout(&error));
                }
            },
            signal = signals.ending(output) => break ExitCode::of_signal(signal?),
            () = stdin::closed(stdin) => break ExitCode::SUCCESS,
        }
    };
    Ok(match releasing.release(guards.into_guards()).await.lost {
        Some(loss) => print_loss(&loss, output).await,
        None => code,
    })
}

async fn print_loss(loss: &LostLock, output: &Output) -> ExitCode {
    output.print_message(&Message::Lost {
        lock: &loss.lock,
        reason: &loss.reason,
    });
    // A script that does not read it still gets the exit code.
    let limit = SystemClock.now() + READING_MAX;
    let _ = within(&SystemClock, limit, print(report::lost(loss))).await;
    ExitCode::LOST
}

async fn print(line: Value) -> io::Result<()> {
    output::apart(move || output::write(&output::json_line(&line))).await
}

/// How long the end waits for the reader of stdout.
const READING_MAX: Duration = Duration::from_secs(1);
