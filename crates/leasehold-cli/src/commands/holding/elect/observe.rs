//! `leasehold elect --observe`: prints the leader and each change.

use leasehold::Client;
use leasehold::election::{LeaderChange, LeaderWatch};

use crate::commands::holding::elect::args::ElectArgs;
use crate::config;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::leader_text;
use crate::output::{self, Output};
use crate::runtime::runtime;
use crate::runtime::signals::Signals;
use crate::store::OpenStore;

/// Prints the leader until a signal arrives; with --once, only the current one.
pub(crate) fn observe(args: &ElectArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    // Before the client starts its thread, which inherits the blocked signals. With --once, signals
    // kill the program.
    let blocked = (!args.once).then(Signals::block).transpose()?;
    let store = OpenStore::open(&choice)?;
    store.print_notice(output);
    let client = store.client();
    let Some(blocked) = blocked else {
        return runtime()?.block_on(print_leader(args, &client));
    };
    let watch = client
        .election(&args.name)
        .poll_interval(args.every)
        .observe()?;
    runtime()?.block_on(async {
        let signals = Signals::new(blocked)?;
        tokio::select! {
            biased;
            signal = signals.ending(output) => Ok(ExitCode::of_signal(signal?)),
            printed = print_changes(args, watch) => printed.map(|()| ExitCode::SUCCESS),
        }
    })
}

async fn print_leader(args: &ElectArgs, client: &Client) -> Result<ExitCode, Failure> {
    let leader = client.election(&args.name).leader().await?;
    let (change, code) = match leader {
        Some(leader) => (LeaderChange::Leads(leader), ExitCode::SUCCESS),
        None => (LeaderChange::Nobody, ExitCode::BUSY),
    };
    print_change(args, &change)?;
    Ok(code)
}

/// Prints every change, until stdout has no reader.
async fn print_changes(args: &ElectArgs, mut watch: LeaderWatch) -> Result<(), Failure> {
    let mut is_first = true;
    loop {
        let change = match watch.next().await {
            // Report an error that does not pass by itself at once.
            Some(LeaderChange::Unknown(error)) if is_first && !error.is_retryable() => {
                return Err(error.into());
            }
            Some(change) => change,
            None => return Err(Failure::of("cannot observe", &"the client has ended")),
        };
        is_first = false;
        if !print_change(args, &change)? {
            return Ok(());
        }
    }
}

/// Returns whether stdout still has a reader.
fn print_change(args: &ElectArgs, change: &LeaderChange) -> Result<bool, Failure> {
    output::print_next(&if args.json {
        output::json_line(&leader_text::json(&args.name, change))
    } else {
        format!("{}\n", leader_text::line(&args.name, change))
    })
}
