//! `leasehold renew` and `leasehold release`.

use leasehold::{Client, Ended, Handle};

use crate::config::{self, Environment};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::hold::handle_file::HandleFile;
use crate::hold::handle_source::HandleSource;
use crate::hold::report;
use crate::hold_args::{ReleaseArgs, RenewArgs};
use crate::holder_text;
use crate::output::{self, Output};
use crate::status::runtime;
use crate::store_url::OpenStore;

/// Renews the lease of a handle once.
pub(crate) fn renew(args: &RenewArgs, output: &Output) -> Result<ExitCode, Failure> {
    let source = HandleSource::of(&args.handle, "renew")?;
    let choice = config::choose(&args.store, &Environment::read())?;
    let store = OpenStore::open(&choice)?;
    refuse_without_leases(&store, "renew")?;
    store.print_notice(output);
    let handle = source.read(output)?;
    let handle = match args.ttl {
        Some(ttl) => handle.with_ttl(ttl),
        None => handle,
    };
    // Before renewing, because a new handle that cannot be written would be lost.
    let file = source.file().map(HandleFile::prepare).transpose()?;
    let client = store.client();
    let renewed = runtime()?.block_on(client.renew(&handle))?;
    let is_shown = file.is_none();
    if let Some(file) = file {
        file.keep(&renewed)?;
    }
    let printed = if args.json {
        output::print_json(&report::handle(&renewed, &client.describe(), is_shown))
    } else if is_shown {
        output::print(&format!("{}\n", renewed.reveal()))
    } else {
        let left = holder_text::whole_millis(report::remaining(&renewed));
        output::print(&format!("{left} left\n"))
    };
    printed.map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// Releases the lock of a handle.
pub(crate) fn release(args: &ReleaseArgs, output: &Output) -> Result<ExitCode, Failure> {
    let source = HandleSource::of(&args.handle, "release")?;
    let choice = config::choose(&args.store, &Environment::read())?;
    let store = OpenStore::open(&choice)?;
    refuse_without_leases(&store, "release")?;
    store.print_notice(output);
    let handle = source.read(output)?;
    let client = store.client();
    let released = runtime()?.block_on(free(&client, &handle))?;
    source.remove()?;
    if args.json {
        output::print_json(&report::released(&handle, &client.describe(), released))
            .map_err(|error| Failure::of_stdout(&error))?;
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
    Ok(client.release(handle).await? != Ended::WasLost)
}

/// A handle needs a lease, which lasts without a process.
pub(super) fn refuse_without_leases(store: &OpenStore, subcommand: &str) -> Result<(), Failure> {
    if store.leases().is_some() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "`{subcommand}` needs a store with leases: in {} a lock ends with the process that holds it; use \
         `leasehold hold` or `leasehold run`",
        store.members()
    )))
}
