use crate::commands::holding::handle::args::RenewArgs;
use crate::commands::holding::handle::handle_file::HandleFile;
use crate::commands::holding::handle::handle_source::HandleSource;
use crate::commands::holding::handle::report;
use crate::config;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::time_text;
use crate::output::{self, Output};
use crate::runtime::runtime;
use crate::store::OpenStore;

/// Renews the lease of a handle once.
pub(crate) fn renew(args: &RenewArgs, output: &Output) -> Result<ExitCode, Failure> {
    let source = HandleSource::of(&args.handle, "renew")?;
    let choice = config::choose_store(&args.store, output)?;
    let store = OpenStore::open(&choice)?;
    store.require_leases("renew")?;
    store.print_notice(output);
    let handle = source.read(output)?;
    let handle = match args.ttl {
        Some(ttl) => handle.with_ttl(ttl),
        None => handle,
    };
    // Before renewing, because a new handle that cannot be written would be lost.
    let file = source.file().map(HandleFile::prepare).transpose()?;
    if file.is_none() {
        output::require_stdout("the new handle")?;
    }
    let client = store.client();
    let renewed = runtime()?.block_on(client.renew(&handle))?;
    let is_shown = file.is_none();
    if let Some(file) = file {
        file.keep(&renewed)?;
    }
    let text = if args.json {
        output::json_line(&report::handle(&renewed, &client.to_string(), is_shown))
    } else if is_shown {
        format!("{}\n", renewed.reveal())
    } else {
        let left = time_text::whole_millis(report::remaining(&renewed));
        format!("{left} left\n")
    };
    let written = output::write(&text);
    // Otherwise the file has the handle.
    if is_shown || args.json {
        written.map_err(|error| Failure::of_stdout(&error))?;
    }
    Ok(ExitCode::SUCCESS)
}
