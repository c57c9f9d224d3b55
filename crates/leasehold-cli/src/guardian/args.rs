use std::ffi::OsString;

use clap::Parser;

/// The subcommand that the program uses to start itself a second time. It is separate from the others,
/// so that help, completions, and man pages do not contain it.
pub(crate) const GUARDIAN: &str = "__guardian";

/// The arguments of the guardian. Later changes go through the pipe.
#[derive(Debug, Parser)]
#[command(name = GUARDIAN)]
pub(crate) struct GuardianArgs {
    /// The descriptor of the control pipe.
    #[arg(long)]
    pub(crate) control: i32,

    /// The descriptor of the pipe for reports.
    #[arg(long)]
    pub(crate) report: i32,

    /// A descriptor that holds a lock, to be kept open.
    #[arg(long)]
    pub(crate) keep: Vec<i32>,

    /// The first deadline, in nanoseconds since boot.
    #[arg(long)]
    pub(crate) deadline: Option<u64>,

    /// Nanoseconds between SIGTERM and SIGKILL.
    #[arg(long)]
    pub(crate) grace: u64,

    /// How many nanoseconds before the deadline the processes must have ended.
    #[arg(long)]
    pub(crate) margin: u64,

    /// The guardian of the process group in which this run is nested.
    #[arg(long)]
    pub(crate) nested_in: Option<i32>,

    /// Give the terminal to CMD.
    #[arg(long)]
    pub(crate) foreground: bool,

    /// The command and its arguments.
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<OsString>,
}

impl GuardianArgs {
    /// The arguments, if the program was started as a guardian.
    pub(crate) fn of_this_process() -> Option<Result<Self, clap::Error>> {
        let mut args = std::env::args_os().skip(1).peekable();
        let is_guardian = args.peek().is_some_and(|subcommand| subcommand == GUARDIAN);
        is_guardian.then(|| Self::try_parse_from(args))
    }
}
