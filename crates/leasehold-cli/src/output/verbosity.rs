use clap::Args;

/// How much the program says on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// What is wrong. A busy lock is not, nor is a server whose failure the store tolerates.
    Quiet,
    /// Also such servers, and on a terminal waits, how they end, and notices.
    #[default]
    Normal,
    /// Everything.
    Verbose,
}

/// The options of every subcommand for its messages.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct VerbosityArgs {
    /// Say only what is wrong; nothing if the lock is busy.
    ///
    /// For scheduled jobs: cron sends mail for each line.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,

    /// Also say when it waits, and acquires and releases a lock.
    #[arg(short, long, global = true)]
    verbose: bool,
}

impl VerbosityArgs {
    pub(crate) fn verbosity(self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        }
    }
}
