//! `leasehold run`: waits for the lock, lets a guardian run the command, and releases the lock.

pub(crate) mod args;
mod with_handle;

use crate::commands::holding::run::args::RunArgs;
use crate::commands::holding::run::with_handle::run_with_handle;
use crate::config;
use crate::locks::context::RunContext;
use crate::locks::held_locks::HeldLocks;
use crate::locks::request::{LockRequest, WaitOutcome};
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::readiness::watched;
use crate::runtime::runtime;
use crate::runtime::signals::Signals;
use crate::supervise::end::End;
use crate::system::require_own_processes;

/// Runs a command while holding a lock.
pub(crate) fn run(args: &RunArgs, output: &Output) -> Result<ExitCode, Failure> {
    require_own_processes()?;
    if let Some(file) = &args.handle_file {
        return run_with_handle(args, file, output);
    }
    let choice = config::choose_store(&args.lock.store, output)?;
    let lock_options = args.lock_options(choice.defaults())?;
    let command = args.command_spec(&lock_options, choice.defaults())?;
    let (context, blocked) = RunContext::open(&lock_options, &choice, output)?;
    let end = runtime()?.block_on(watched(async {
        let signals = Signals::new(blocked)?;
        let request = LockRequest {
            can_borrow: true,
            ..context.request()
        };
        let borrowed = context
            .outer_runs
            .innermost(context.store.location(), &lock_options.name);
        let hold = match borrowed.filter(|_| args.nested) {
            Some(lock) => request.enter(lock.clone()).await?,
            None => match request.acquire(&signals).await? {
                WaitOutcome::Held(guards) => HeldLocks::Own(guards),
                WaitOutcome::Signalled(signal) => {
                    return Ok(End::With(ExitCode::of_signal(signal)));
                }
            },
        };
        context.perform(&command, hold, &signals, None).await
    }))?;
    Ok(context.leave(end))
}
