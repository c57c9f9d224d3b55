//! `leasehold members`: shows and changes a quorum.

pub(crate) mod args;
pub(crate) mod ask_members;
mod change;
mod readmit;
mod replace;
pub(crate) mod servers;
mod show;
mod state;

use crate::commands::admin::members::args::MembersArgs;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;

/// Shows the servers of a store, or changes a quorum.
pub(crate) fn members(args: &MembersArgs, output: &Output) -> Result<ExitCode, Failure> {
    match &args.change {
        None => show::show(args, output),
        Some(change) => change::change(args, change, output),
    }
}
