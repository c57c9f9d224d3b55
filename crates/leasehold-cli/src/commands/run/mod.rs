//! `leasehold run`: waits for the lock, lets a guardian run the command, and releases the lock.

pub(crate) mod args;

use crate::commands::run::args::RunArgs;
use crate::locks::context::Stage;
use crate::locks::hold::Hold;
use crate::locks::request::{Request, Wait};
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::process::descendants::require_own_proc;
use crate::runtime::runtime;
use crate::runtime::signals::Signals;
use crate::supervise::end::End;

/// Runs a command while holding a lock.
pub(crate) fn run(args: &RunArgs, output: &Output) -> Result<ExitCode, Failure> {
    let lock_options = args.lock_options();
    let work = args.work(&lock_options)?;
    require_own_proc()?;
    let (stage, blocked) = Stage::set(&lock_options, &args.take.store, output)?;
    let end = runtime()?.block_on(async {
        let signals = Signals::new(blocked)?;
        let request = Request {
            lends: true,
            ..stage.request()
        };
        let lent = stage
            .nesting
            .innermost(stage.store.place(), &lock_options.name);
        let hold = match lent.filter(|_| args.nested) {
            Some(lock) => request.enter(lock.clone()).await?,
            None => match request.acquire(&signals).await? {
                Wait::Held(guards) => Hold::Own(guards),
                Wait::Signalled(signal) => return Ok(End::With(ExitCode::of_signal(signal))),
            },
        };
        stage.perform(&work, hold, &signals, None).await
    })?;
    Ok(stage.leave(end))
}
