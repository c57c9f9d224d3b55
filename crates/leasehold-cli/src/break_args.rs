use clap::Args;
use leasehold::{Break, Fence};

use crate::args::StoreArgs;

/// The arguments of `break`.
#[derive(Debug, Args)]
pub(crate) struct BreakArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Break the lease with this fence, as in `leasehold status`.
    ///
    /// A later holder has another fence, and is not hit by mistake. Without --fence nothing is broken,
    /// and the holder is shown.
    #[arg(long, value_name = "N", value_parser = fence, allow_negative_numbers = true)]
    pub(crate) fence: Option<Fence>,

    /// Release the lock at once.
    ///
    /// The old holder may work until its next renewal, at the same time as the next holder. Only a check
    /// of fences protects against that.
    #[arg(long)]
    pub(crate) now: bool,

    /// Record a reason: one line of at most 512 bytes.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: Option<String>,

    /// Print one JSON object on stdout.
    ///
    /// `version` is 1; later versions may add fields, but change none. `lock`, `store`; `shut_for_ms`,
    /// how long the lock stays reserved, null if it is free; `members`, the number of servers on which
    /// it was broken, and `of`, the number of servers; `broken`, the record, as in `status`.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name of the lock.
    pub(crate) name: String,
}

fn fence(text: &str) -> Result<Fence, String> {
    let number = text.parse().ok().and_then(Fence::new);
    number.ok_or_else(|| "a fence is a whole number of at least 1; see `leasehold status`".into())
}

fn reason(text: &str) -> Result<String, String> {
    let checked = Break::at_its_end().because(text);
    checked.map_err(|error| error.reason().to_owned())?;
    Ok(text.to_owned())
}
