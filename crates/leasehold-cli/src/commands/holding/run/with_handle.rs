use std::path::Path;

use leasehold::{GuardSet, Mode};

use crate::commands::holding::handle::handle_file::HandleFile;
use crate::commands::holding::handle::handle_source::HandleSource;
use crate::commands::holding::run::args::RunArgs;
use crate::config;
use crate::locks::context::RunContext;
use crate::locks::held_locks::HeldLocks;
use crate::options::defaults::Defaults;
use crate::options::lock_options::LockOptions;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::readiness::watched;
use crate::runtime::runtime;
use crate::runtime::signals::Signals;
use crate::supervise::end::End;

/// Runs a command under the lock of the handle in `path`, and renews the lease meanwhile. Leaves the lock held, with a new
/// handle in the file.
pub(crate) fn run_with_handle(
    args: &RunArgs,
    path: &Path,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let handle = HandleSource::File(path.to_owned()).read(output)?;
    let mode = handle.mode();
    let lock_options = LockOptions {
        shared: mode == Mode::Shared,
        permits: match mode {
            Mode::Permit(permits) => Some(permits),
            Mode::Exclusive | Mode::Shared => None,
        },
        json: args.json,
        ..LockOptions::alone(handle.key().as_str(), Some(handle.ttl()))
    };
    let command = args.command_spec(&lock_options, Defaults::default())?;
    let choice = config::choose_store(&args.lock.store, output)?;
    let (mut context, blocked) = RunContext::open(&lock_options, &choice, output)?;
    context.store.require_leases("run --handle-file")?;
    context.keeps_locks = true;
    // Before the command, because a new handle that cannot be written would be lost.
    let file = HandleFile::prepare(path)?;
    let end = runtime()?.block_on(watched(async {
        let signals = Signals::new(blocked)?;
        let guard = context.client.adopt(&handle).await?;
        // The wrapper releases the other one.
        let last = guard.reenter();
        let hold = HeldLocks::Own(GuardSet::from(guard));
        let end = context.perform(&command, hold, &signals, None).await;
        if !matches!(end, Ok(End::Lost { .. })) {
            file.keep(&last.into_handle()?)?;
        }
        end
    }))?;
    Ok(context.leave(end))
}
