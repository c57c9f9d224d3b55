//! `leasehold init`: prepares a store for locks.

mod args;
#[cfg(feature = "redis")]
mod quorum;

use crate::config;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::{self, Output};
use crate::store::address::backend;

pub(crate) use args::InitArgs;

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
use quorum::initialize as init_quorum;

#[cfg(not(feature = "redis"))]
fn init_quorum(_: &InitArgs, _: &Output) -> Result<ExitCode, Failure> {
    Err(Failure::usage(
        "the store is a folder, which needs no initialization",
    ))
}
