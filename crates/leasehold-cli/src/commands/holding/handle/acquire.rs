use std::fs;

use leasehold::Client;
use leasehold::handle::Handle;

use crate::commands::holding::handle::args::AcquireArgs;
use crate::commands::holding::handle::handle_file::HandleFile;
use crate::commands::holding::handle::renewer;
use crate::commands::holding::handle::report;
use crate::config;
use crate::locks::context::RunContext;
use crate::locks::request::WaitOutcome;
use crate::options::lock_options::LockOptions;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::{self, Output};
use crate::runtime::runtime;
use crate::runtime::signals::Signals;

/// Acquires a lock, and leaves it held with a handle.
pub(crate) fn acquire(args: &AcquireArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.lock.store, output)?;
    let lock_options = LockOptions {
        // The process ends, and the lock stays held.
        program: "leasehold acquire",
        ..args
            .lock
            .lock_options(&args.name, args.json, choice.defaults())?
    };
    let (context, blocked) = RunContext::open(&lock_options, &choice, output)?;
    context.store.require_leases("acquire")?;
    // Before acquiring, because a handle that cannot be written would be lost.
    let file = args.handle_file.as_deref();
    if file.is_none() {
        output::require_stdout("the handle")?;
    }
    let file = file.map(HandleFile::prepare_new).transpose()?;
    runtime()?.block_on(async {
        let signals = Signals::new(blocked)?;
        let guards = match context.request().acquire(&signals).await? {
            WaitOutcome::Held(guards) => guards,
            WaitOutcome::Signalled(signal) => return Ok(ExitCode::of_signal(signal)),
        };
        let Some(guard) = guards.into_guards().next() else {
            return Err(Failure::of("cannot acquire", &"no lock was named"));
        };
        let handle = guard.into_handle()?;
        let handle = match args.portable {
            true => handle.portable()?,
            false => handle,
        };
        let handed_over = hand_over(&handle, &context.client, file, args.json);
        let renewed = handed_over.and_then(|()| match (&args.handle_file, args.renew_for) {
            (Some(path), Some(span)) => renewer::start(path, span, &args.lock.store),
            _ => Ok(()),
        });
        if let Err(failure) = renewed {
            // The handle was not delivered, so release the lock.
            let _ = context.client.release(&handle).await;
            return Err(failure);
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn hand_over(
    handle: &Handle,
    client: &Client,
    file: Option<HandleFile>,
    json: bool,
) -> Result<(), Failure> {
    let is_shown = file.is_none();
    let kept = file.map(|file| file.keep(handle)).transpose()?;
    let printed = match (json, is_shown) {
        (true, _) => {
            let object = report::handle(handle, &client.to_string(), is_shown);
            output::write(&output::json_line(&object))
        }
        (false, true) => output::write(&format!("{}\n", handle.reveal())),
        (false, false) => Ok(()),
    };
    printed.map_err(|error| {
        if let Some(path) = kept {
            // Its handle is useless.
            let _ = fs::remove_file(path);
        }
        Failure::of_stdout(&error)
    })
}
