use std::path::PathBuf;

use clap::{Args, Subcommand};
use leasehold::Fence;

/// The arguments of `fence`.
#[derive(Debug, Args)]
pub(crate) struct FenceArgs {
    #[command(subcommand)]
    pub(crate) action: FenceAction,
}

/// The subcommands of `fence`.
#[derive(Debug, Subcommand)]
pub(crate) enum FenceAction {
    /// Check that no later fence has been seen, and remember it.
    ///
    /// Protects data that cannot compare fences itself. A script calls it right before each write, and
    /// writes only if it exits with 0. A holder that was paused and comes late gets exit code 76 once a
    /// later holder has called.
    ///
    /// FILE keeps the greatest fence so far. It is replaced as a whole and is on disk before the call
    /// exits; concurrent calls run one after another. Mode and owner stay the same, so each caller must
    /// be the owner of FILE or root. A missing FILE is created, and passes any fence.
    ///
    /// The script can still be paused between the check and the write. Keep the write short, best a
    /// rename or a single command. If the target of the write can compare fences, do it there.
    Check(FenceCheckArgs),
}

/// The arguments of `fence check`.
#[derive(Debug, Args)]
pub(crate) struct FenceCheckArgs {
    /// Keep the greatest fence in FILE.
    ///
    /// Use one FILE for each protected resource, and place it next to the resource.
    #[arg(long, value_name = "FILE")]
    pub(crate) high_water: PathBuf,

    /// Print one JSON object on stdout, also on refusal.
    ///
    /// `version` is 1; later versions may add fields, but change none. `token`, `passes`, `high_water`
    /// (the greatest fence so far) and `before` (the greatest fence before this call, or null).
    #[arg(long)]
    pub(crate) json: bool,

    /// The fence of the holder [default: LEASEHOLD_FENCE].
    ///
    /// `leasehold run`, `elect` and `once` set LEASEHOLD_FENCE for their command.
    #[arg(value_parser = fence, allow_negative_numbers = true)]
    pub(crate) token: Option<Fence>,
}

/// Parses a fence. Only digits are accepted, so that a truncated or padded value is noticed.
pub(crate) fn fence(text: &str) -> Result<Fence, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten();
    let rule = || format!("a fence is a number from 1 to {}", u64::MAX);
    number.and_then(Fence::new).ok_or_else(rule)
}
