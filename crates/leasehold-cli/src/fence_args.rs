use std::path::PathBuf;

use clap::{Args, Subcommand};
use leasehold::Fence;

use crate::args::postscript;

/// The arguments of `fence`.
#[derive(Debug, Args)]
pub(crate) struct FenceArgs {
    #[command(subcommand)]
    pub(crate) deed: FenceDeed,
}

/// What is done with a fence.
#[derive(Debug, Subcommand)]
pub(crate) enum FenceDeed {
    /// Let TOKEN pass if no greater one was shown before, and remember it.
    ///
    /// For what a lock protects and what cannot compare fences itself: a script calls it right before
    /// each write, and does not write unless it exits with 0. A holder that was paused, and comes late,
    /// is refused with 76, once a later holder was here.
    ///
    /// FILE keeps the greatest fence. It is replaced as a whole, and is on the disk before the exit
    /// code says so; of several calls at once one follows the other. Its mode and owner stay: who writes
    /// FILE must be its owner, or root. A FILE that is not there counts as one to which no fence was
    /// shown, and is made.
    ///
    /// Between the check and the write the script can still be paused. Where a write is a rename or a
    /// single command, put it right behind; where the store of the data can compare, let that do it.
    #[command(after_help = postscript())]
    Check(FenceCheckArgs),
}

/// The arguments of `fence check`.
#[derive(Debug, Args)]
pub(crate) struct FenceCheckArgs {
    /// The file with the greatest fence that was shown: one for each thing that is protected, beside it.
    #[arg(long, value_name = "FILE")]
    pub(crate) high_water: PathBuf,

    /// Print one JSON object on stdout, also where the fence is refused. Its `version` is 1 as long as
    /// no field of these changes its meaning or goes; others may come.
    ///
    /// `token`, `passes`, `high_water` (the greatest fence shown by now) and `before` (the greatest
    /// before this one; null where there was none).
    #[arg(long)]
    pub(crate) json: bool,

    /// The fence of the holder [default: LEASEHOLD_FENCE, as `leasehold run`, `elect` and `once` set it].
    #[arg(value_parser = fence, allow_negative_numbers = true)]
    pub(crate) token: Option<Fence>,
}

/// A fence as text: digits alone, so that what was cut off or added on its way is noticed.
pub(crate) fn fence(text: &str) -> Result<Fence, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten();
    let rule = || format!("a fence is a number from 1 to {}", u64::MAX);
    number.and_then(Fence::new).ok_or_else(rule)
}
