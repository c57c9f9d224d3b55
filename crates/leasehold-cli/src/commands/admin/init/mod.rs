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

/// Prepares a store for locks. Does nothing if that is done, or not needed: the quorum is initialized with the same
/// configuration, the schema of the database has the latest version, or the store is used as it is.
pub(crate) fn init(args: &InitArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let backend = backend(&choice)?;
    if backend.is_quorum() {
        return init_quorum(args, output);
    }
    if args.max_ttl.is_some() || args.clock_tolerance.is_some() || args.new {
        return Err(Failure::usage(
            "--max-ttl, --clock-tolerance and --new are for a quorum of Redis servers",
        ));
    }
    let prepared = backend.prepare()?;
    let printed = if args.json {
        output::print_json(&prepared.json)
    } else {
        output::print(&prepared.text)
    };
    printed?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "redis")]
use quorum::initialize as init_quorum;

#[cfg(not(feature = "redis"))]
fn init_quorum(_: &InitArgs, _: &Output) -> Result<ExitCode, Failure> {
    Err(Failure::usage("this build of leasehold has no quorums"))
}
