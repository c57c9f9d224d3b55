use clap::Args;

use crate::options::lock_args::LockArgs;
use crate::options::readiness_args::ReadinessArgs;

/// The arguments of `hold`.
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    pub(crate) lock: LockArgs,

    /// Ignore stdin: only a signal ends the hold.
    ///
    /// If the script is killed without sending a signal, the lock stays held.
    #[arg(long)]
    pub(crate) ignore_stdin: bool,

    #[command(flatten)]
    pub(crate) readiness: ReadinessArgs,

    /// Print other messages as JSON too, on stderr.
    ///
    /// The last one is `end`, with `exit_code`.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name of the lock.
    pub(crate) name: String,
}
