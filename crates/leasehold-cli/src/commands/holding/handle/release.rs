use leasehold::handle::Handle;
use leasehold::{Client, ReleaseOutcome};

use crate::commands::holding::handle::args::ReleaseArgs;
use crate::commands::holding::handle::handle_source::HandleSource;
use crate::commands::holding::handle::report;
use crate::config;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::{self, Output};
use crate::runtime::runtime;
use crate::store::OpenStore;

/// Releases the lock of a handle.
pub(crate) fn release(args: &ReleaseArgs, output: &Output) -> Result<ExitCode, Failure> {
    let source = HandleSource::of(&args.handle, "release")?;
    let choice = config::choose_store(&args.store, output)?;
    let store = OpenStore::open(&choice)?;
    store.require_leases("release")?;
    store.print_notice(output);
    let handle = source.read(output)?;
    let client = store.client();
    let released = runtime()?.block_on(free(&client, &handle))?;
    source.remove()?;
    if args.json {
        output::print_json(&report::released(&handle, &client.to_string(), released))?;
    }
    match released {
        true => Ok(ExitCode::SUCCESS),
        false => Err(Failure::new(
            ExitCode::LOST,
            format!(
                "lock {:?} was no longer held by this handle",
                handle.key().as_str()
            ),
        )),
    }
}

async fn free(client: &Client, handle: &Handle) -> Result<bool, Failure> {
    Ok(client.release(handle).await? != ReleaseOutcome::WasLost)
}
