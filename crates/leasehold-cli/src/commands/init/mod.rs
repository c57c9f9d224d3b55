use std::time::Duration;

use clap::Args;

use crate::config;
use crate::options::span::span;
use crate::options::store_args::StoreArgs;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::{self, Output};
use crate::store::address::backend;

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Set the longest TTL in the quorum [default: 60s].
    ///
    /// A server that may have forgotten locks has no vote for this time and a second. It cannot be changed later;
    /// all clients learn it from the servers.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) max_ttl: Option<Duration>,

    /// Set the tolerated clock difference [default: 250ms].
    ///
    /// The clocks of the servers may differ by at most this much. A TTL must be at least ten times as long. It cannot be
    /// changed later; all clients learn it from the servers.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) clock_tolerance: Option<Duration>,

    /// State that the servers were new before the first lock.
    ///
    /// Needed only if a client initialized the quorum, and locks may have been granted since. If a server had
    /// lost its data before, `once` may run a command twice.
    #[arg(long)]
    pub(crate) new: bool,

    /// Print one JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prepares a store for locks. Does nothing if that is done: the quorum is initialized with the same configuration, or the
/// schema of the database has the latest version.
pub(crate) fn init(args: &InitArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let Some(prepared) = backend(&choice)?.prepare() else {
        return init_quorum(args, output);
    };
    if args.max_ttl.is_some() || args.clock_tolerance.is_some() || args.new {
        return Err(Failure::usage(
            "--max-ttl, --clock-tolerance and --new are for a quorum of Redis servers",
        ));
    }
    let prepared = prepared?;
    let printed = if args.json {
        output::print_json(&prepared.json)
    } else {
        output::print(&prepared.text)
    };
    printed.map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "redis")]
use crate::commands::members::initialize as init_quorum;

#[cfg(not(feature = "redis"))]
fn init_quorum(_: &InitArgs, _: &Output) -> Result<ExitCode, Failure> {
    Err(Failure::usage(
        "the store is a folder, which needs no initialization",
    ))
}
