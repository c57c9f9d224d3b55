//! `leasehold elect`: runs a command while this program leads, or prints who leads.

pub(crate) mod args;
mod backoff;
mod candidate;
mod observe;

pub(crate) use observe::observe;

use crate::commands::holding::elect::args::ElectArgs;
use crate::commands::holding::elect::candidate::Candidate;
use crate::config;
use crate::locks::context::RunContext;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::readiness::watched;
use crate::runtime::runtime;
use crate::runtime::signals::Signals;
use crate::system::require_own_processes;

/// Runs a command while this program leads, again after each loss.
pub(crate) fn elect(args: &ElectArgs, output: &Output) -> Result<ExitCode, Failure> {
    args.check_value()?;
    let choice = config::choose_store(&args.store, output)?;
    let lock_options = args.lock_options(choice.defaults())?;
    let command = args.command_spec(&lock_options)?;
    require_own_processes()?;
    let (context, blocked) = RunContext::open(&lock_options, &choice, output)?;
    let end = runtime()?.block_on(watched(async {
        let signals = Signals::new(blocked)?;
        let candidate = Candidate {
            args,
            command: &command,
            context: &context,
            signals: &signals,
        };
        candidate.campaign().await
    }))?;
    Ok(context.leave(end))
}
