use serde_json::json;
use tokio::runtime::Runtime;

use crate::args::StatusArgs;
use crate::config::{self, Environment};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::holder_text;
use crate::output::{self, Output};
use crate::store_url::OpenStore;

/// Shows who holds a lock.
pub(crate) fn status(args: &StatusArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose(&args.store, &Environment::read())?;
    let store = OpenStore::open(&choice)?;
    store.speak_up(output);
    let client = store.client();
    let holders = runtime()?.block_on(client.holders(&args.name))?;
    let printed = if args.json {
        output::print_json(&json!({
            "lock": args.name,
            "store": client.describe(),
            "held": !holders.is_empty(),
            "holders": holders.iter().map(holder_text::json).collect::<Vec<_>>(),
        }))
    } else if holders.is_empty() {
        output::print(&format!("{}: free\n", args.name))
    } else {
        let lines: Vec<String> = holders
            .iter()
            .map(|holder| format!("{}: held by {}\n", args.name, holder_text::phrase(holder)))
            .collect();
        output::print(&lines.concat())
    };
    printed.map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// A runtime for the program's own waiting; stores are polled on the client's thread.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::of("cannot wait for anything", &error))
}
