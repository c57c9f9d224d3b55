//! `leasehold run`: waits for the lock, lets a guardian run the command, releases the lock. And
//! `elect`, which announces that and repeats it after each loss.

pub(crate) mod end;
pub(crate) mod guardian;
pub(crate) mod guardian_args;
pub(crate) mod hold;
pub(crate) mod once;
pub(crate) mod signals;
pub(crate) mod stage;
pub(crate) mod waiting;

mod candidate;
mod descendants;
mod ending;
mod guardian_process;
mod job_control;
mod min_hold;
mod nesting;
mod orders;
mod outer_lock;
mod pauses;
mod protocol;
mod raw;
mod terminal;
mod wrapper;

use crate::elect_args::ElectArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::Output;
use crate::run::candidate::Candidate;
use crate::run::descendants::require_own_proc;
use crate::run::end::End;
use crate::run::hold::Hold;
use crate::run::signals::Signals;
use crate::run::stage::Stage;
use crate::run::waiting::{Request, Wait};
use crate::run_args::RunArgs;
use crate::status::runtime;

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

/// Runs a command while this program leads, again after each loss.
pub(crate) fn elect(args: &ElectArgs, output: &Output) -> Result<ExitCode, Failure> {
    args.check_value()?;
    let lock_options = args.lock_options();
    let work = args.work(&lock_options)?;
    require_own_proc()?;
    let (stage, blocked) = Stage::set(&lock_options, &args.store, output)?;
    let end = runtime()?.block_on(async {
        let signals = Signals::new(blocked)?;
        let candidate = Candidate {
            args,
            work: &work,
            stage: &stage,
            signals: &signals,
        };
        candidate.campaign().await
    })?;
    Ok(stage.leave(end))
}
