use clap::Args;
use leasehold::{Break, Fence};

use crate::args::StoreArgs;

/// The arguments of `break`.
#[derive(Debug, Args)]
pub(crate) struct BreakArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// The fence of the lease to break, as `leasehold status` shows it. So nobody is hit who took the
    /// lock meanwhile. Without it nothing is done, and the holder is shown.
    #[arg(long, value_name = "N", value_parser = fence, allow_negative_numbers = true)]
    pub(crate) fence: Option<Fence>,

    /// Free the lock at once. The holder may go on until its next renewal, beside the next one: only a
    /// check of fences protects then.
    #[arg(long)]
    pub(crate) now: bool,

    /// Why, for whoever reads the record: one line of at most 512 bytes.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: Option<String>,

    /// Print one JSON object on stdout. Its `version` is 1 as long as no field of these changes its
    /// meaning or goes; others may come.
    ///
    /// `lock`, `store`; `shut_for_ms`, how long the lock stays shut, null where it is free; `members`, on how
    /// many servers it was broken, and `of`, how many there are; `broken`, the record, as in `status`.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name of the lock.
    pub(crate) name: String,
}

fn fence(text: &str) -> Result<Fence, String> {
    let number = text.parse().ok().and_then(Fence::new);
    number.ok_or_else(|| "a fence is a whole number from 1 on, as `status` shows it".into())
}

fn reason(text: &str) -> Result<String, String> {
    let checked = Break::at_its_end().because(text);
    checked.map_err(|error| error.reason().to_owned())?;
    Ok(text.to_owned())
}
